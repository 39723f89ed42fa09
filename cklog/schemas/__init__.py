"""JSON Schemas of all answers, one file a command: `importlib.resources.files("cklog.schemas") / "verify.json"`.

They are made of the types that the façade promises (docs/json.md), and every golden answer is held against them.
"""
