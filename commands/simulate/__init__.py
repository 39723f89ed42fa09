"""`cklog simulate …`: runs made by known protocols and workloads, one module each.

* `group`: the commands of `simulate`
* `options`: what every simulation takes, and how what it made is shown
* `cec`, `dataflow` (nexmark, cyclic), `odysseus`: the simulations
"""
