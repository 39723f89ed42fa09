import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.core.fs.Path;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.filesystem.RollingPolicy;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.DefaultRollingPolicy;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Numbers counted by split and remainder on a mini-cluster in this process: one job until it is killed, or one after
 * the other as standard input asks.
 *
 * <p>`kill WORD...`: one job that never ends by itself. `serve`: a line is a job, its words separated by tabs; each
 * runs to the end of its numbers, or for job.seconds at most. A word is KEY=VALUE: `job.` words are read here, the
 * others are Flink's settings. What the engine did is told a line each:
 *
 * <pre>
 * FIRST split n                  the first number of a split that was read in this process
 * READ n                         how many numbers a reader's operator state says were read
 * STATE split remainder n before number n is the first of its key here, and the key's state held `before`
 * TOTAL split remainder n slots  at the end: how many numbers of the key were counted, and the sum of its slots
 * DONE id status                 a job is over: FINISHED, FAILED or RUNNING, if its time was up
 * </pre>
 */
public final class Campaign {
    private static final int KEYS = 13;
    private static final int SLOTS = 64;

    public static void main(String[] args) throws Exception {
        if (args[0].equals("kill")) {
            Job job = new Job(java.util.Arrays.copyOfRange(args, 1, args.length));
            job.untilKilled(job.start());
            System.exit(1);
        }
        System.out.println("READY");
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            Job job = new Job(line.split("\t"));
            String status = job.toItsEnd();
            System.out.println("DONE " + job.word("id") + " " + status);
            System.out.flush();
        }
        System.exit(0);
    }

    /** What the words of a job say, and the job. */
    static final class Job {
        private final Map<String, String> words = new HashMap<>();
        private final Configuration conf = new Configuration();

        Job(String[] given) {
            for (String each : given) {
                String[] word = each.split("=", 2);
                if (word[0].startsWith("job.")) {
                    words.put(word[0].substring(4), word[1]);
                } else {
                    conf.setString(word[0], word[1]);
                }
            }
        }

        String word(String name) {
            return words.getOrDefault(name, "");
        }

        private long number(String name) {
            return Long.parseLong(words.get(name));
        }

        JobClient start() throws Exception {
            int parallelism = (int) number("parallelism");
            long size = number("size");
            StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(parallelism, conf);
            NumberSequenceSource numbers = new NumberSequenceSource(0, number("splits") * size - 1);
            DataStream<Long> counted = env
                    .fromSource(numbers, WatermarkStrategy.noWatermarks(), "numbers").uid("numbers")
                    .map(new Pace(size, number("read-us"))).uid("pace").name("pace")
                    .keyBy(n -> n / size * KEYS + n % KEYS)
                    .process(new Count(size, number("count-us"))).uid("count").name("count");
            switch (word("sink")) {
                case "closed":
                    counted.sinkTo(files(OnCheckpointRollingPolicy.build())).uid("out").name("out");
                    break;
                case "open":
                    counted.sinkTo(files(DefaultRollingPolicy.builder().build())).uid("out").name("out");
                    break;
                case "rolling":
                    counted.sinkTo(files(DefaultRollingPolicy.builder()
                            .withRolloverInterval(Duration.ofMillis(700)).build())).uid("out").name("out");
                    break;
                case "ledger":
                    counted.map(new Ledger(word("folder"))).uid("ledger").name("ledger")
                            .sinkTo(new DiscardingSink<>()).uid("out").name("out");
                    break;
                default:
                    counted.sinkTo(new DiscardingSink<>()).uid("out").name("out");
            }
            return env.executeAsync("numbers");
        }

        private FileSink<Long> files(RollingPolicy<Long, String> policy) {
            Path folder = new Path(java.nio.file.Path.of(word("folder")).toUri());
            return FileSink.<Long>forRowFormat(folder, new SimpleStringEncoder<>())
                    .withBucketAssigner(new BasePathBucketAssigner<>())
                    .withRollingPolicy(policy).build();
        }

        /** Waits for the kill, and takes savepoints meanwhile if that is asked for. */
        void untilKilled(JobClient client) throws Exception {
            CompletableFuture<JobExecutionResult> result = client.getJobExecutionResult();
            while (!result.isDone()) {
                Thread.sleep(600);
                if (!word("savepoint").isEmpty()) {
                    SavepointFormatType format = SavepointFormatType.valueOf(word("savepoint"));
                    try {
                        System.out.println("SAVEPOINT " + client.triggerSavepoint(word("savepoints"), format).get());
                    } catch (ExecutionException refused) {
                        System.out.println("REFUSED " + refused);
                    }
                }
            }
        }

        String toItsEnd() {
            try {
                JobClient client = start();
                try {
                    client.getJobExecutionResult().get(number("seconds"), TimeUnit.SECONDS);
                    return "FINISHED";
                } catch (TimeoutException late) {
                    client.cancel().get();
                    return "RUNNING";
                }
            } catch (Throwable failed) {
                failed.printStackTrace(System.out);
                return "FAILED";
            }
        }
    }

    static void pause(long micros) throws InterruptedException {
        if (micros > 0) {
            Thread.sleep(micros / 1000, (int) (micros % 1000) * 1000);
        }
    }

    /** As slow as asked, with the number of numbers read as operator state. */
    static final class Pace extends RichMapFunction<Long, Long> implements CheckpointedFunction {
        private final long size;
        private final long micros;
        private transient Set<Long> begun;
        private transient ListState<Long> state;
        private transient long read;

        Pace(long size, long micros) {
            this.size = size;
            this.micros = micros;
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            begun = new HashSet<>();
            state = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("read", Long.class));
            for (Long each : state.get()) {
                read += each;
            }
            if (context.isRestored()) {
                System.out.println("READ " + read);
            }
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            state.update(java.util.List.of(read));
        }

        @Override
        public Long map(Long n) throws Exception {
            if (begun.add(n / size)) {
                System.out.println("FIRST " + n / size + " " + n);
            }
            pause(micros);
            read++;
            return n;
        }
    }

    /** Numbers so far by key, the last numbers by slot, and a timer that tells both at the end. */
    static final class Count extends KeyedProcessFunction<Long, Long, Long> {
        private final long size;
        private final long micros;
        private transient ValueState<Long> count;
        private transient MapState<Long, Long> slots;
        private transient Set<Long> seen;

        Count(long size, long micros) {
            this.size = size;
            this.micros = micros;
        }

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Long.class));
            slots = getRuntimeContext().getMapState(new MapStateDescriptor<>("slots", Long.class, Long.class));
            seen = new HashSet<>();
        }

        @Override
        public void processElement(Long n, Context context, Collector<Long> out) throws Exception {
            pause(micros);
            Long before = count.value();
            if (seen.add(context.getCurrentKey())) {
                long held = before == null ? 0 : before;
                System.out.println("STATE " + n / size + " " + n % KEYS + " " + n + " " + held);
            }
            if (before == null) {
                context.timerService().registerEventTimeTimer(Long.MAX_VALUE - 1);
            }
            count.update(before == null ? 1 : before + 1);
            slots.put(n % SLOTS, n);
            out.collect(n);
        }

        @Override
        public void onTimer(long time, OnTimerContext context, Collector<Long> out) throws Exception {
            long sum = 0;
            for (Long each : slots.values()) {
                sum += each;
            }
            long key = context.getCurrentKey();
            System.out.println("TOTAL " + key / KEYS + " " + key % KEYS + " " + count.value() + " " + sum);
        }
    }

    /** A sink without transactions: each number is a line, written at once. */
    static final class Ledger extends RichMapFunction<Long, Long> {
        private final String folder;
        private transient OutputStream out;

        Ledger(String folder) {
            this.folder = folder;
        }

        @Override
        public void open(OpenContext context) throws Exception {
            java.nio.file.Files.createDirectories(java.nio.file.Path.of(folder));
            out = new FileOutputStream(folder + "/ledger-" + UUID.randomUUID());
        }

        @Override
        public Long map(Long n) throws Exception {
            out.write((n + "\n").getBytes());
            return n;
        }

        @Override
        public void close() throws Exception {
            if (out != null) {
                out.close();
            }
        }
    }
}
