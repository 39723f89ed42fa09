.PHONY: check test test-slow site lowest lock dist bench samples golden mutants fuzz everywhere differential

check:
	ruff check .
	ruff format --check .
	lint-imports --no-logo
	mypy
	python -m pytest

test:
	python -m pytest

test-slow:
	python -m pytest -m slow --hypothesis-profile=all

samples:  # not those of real systems: make_spark_wordcount.py, make_spark_state.py, make_flink.py,
# make_spark_tables.py, make_flink_tables.py
	python sample_logs/make_native.py
	python sample_logs/make_raw_events.py
	python sample_logs/make_simulated.py
	python sample_logs/make_cec.py
	python sample_logs/make_incremental.py
	python sample_logs/make_patent_store.py
	python sample_logs/make_token_rounds.py
	python sample_logs/make_meteor.py
	python sample_logs/make_odysseus.py
	python sample_logs/make_kafka.py
	python sample_logs/make_kafka_streams.py
	python sample_logs/make_checkmate.py

golden:
	python -m pytest --refresh-golden tests/golden

site:  # the documentation site, in build/site; the same by CI, strictly: .ci/site
	mkdocs build

lowest:  # the golden answers with the lowest versions that pyproject.toml allows
	.ci/lowest

lock:  # the versions and checksums that CI installs; to take newer versions: .ci/lock --upgrade
	.ci/lock

dist:  # wheel, source distribution and bill of materials in dist/, built twice and compared
	.ci/dist

bench:
	python benchmarks/run.py

COUNT = 75
SEED = 0
JOBS = 1
mutants:  # faults in the rooms that decide, and whether a test notices: make mutants COUNT=75 SEED=1
	python -m tests.mutants --count $(COUNT) --seed $(SEED)

fuzz:  # damage by seed, every format and command: make fuzz COUNT=1000000 SEED=0 JOBS=2
	python -m tests.fuzz --count $(COUNT) --seed $(SEED) --jobs $(JOBS)

everywhere:  # each file of each folder damaged, asked by all commands: make everywhere JOBS=2
	python -m tests.fuzz.everywhere --jobs $(JOBS)

differential:  # decoders against those of others, on the same bytes: make differential COUNT=200000 SEED=0 JOBS=2
	python -m tests.differential --count $(COUNT) --seed $(SEED) --jobs $(JOBS)
