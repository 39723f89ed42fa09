"""A campaign on Spark: queries killed, their files damaged, the answer asked for, and the query really restarted.

    python -m tests.live.spark --trials 200 --seed 0
    python -m tests.live.spark --trial 17

`kinds` lists the kinds of query, `streams` says what each does, `engine` runs them, in a process to be killed or to
restart them (`worker`). A *round* (`rounds`) runs eight kinds in one JVM and takes four images of each: three while
SIGSTOP holds the process, the last after SIGKILL. A *trial* (`trials`) puts an image where its query ran, damages every
second one (`damage`), asks cklog (`ask`), restarts the query as it is and after what cklog printed, and compares what
the sink has with an unbroken run (`judge`).
"""
