import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

import java.util.HashSet;
import java.util.Set;

/**
 * Numbers counted by split and remainder, on a mini-cluster in this process, until it is killed.
 *
 * <p>Numbers SPLIT_SIZE READ COUNT KEY=VALUE...: two splits of SPLIT_SIZE numbers each; READ microseconds to read a
 * number, and COUNT to count it; Flink's settings KEY=VALUE. With a slow count, numbers wait between the two. It prints what the engine itself did, a line each:
 *
 * <pre>
 * FIRST n                        the first number that a reader read, in this process
 * STATE split remainder n before number n is the first of its key here, and the key's state held `before`
 * </pre>
 */
public final class Numbers {
    private static final int READERS = 2; // one for each split
    private static final int KEYS = 13;

    public static void main(String[] args) throws Exception {
        long size = Long.parseLong(args[0]);
        Configuration conf = new Configuration();
        for (int i = 3; i < args.length; i++) {
            String[] setting = args[i].split("=", 2);
            conf.setString(setting[0], setting[1]);
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(READERS, conf);
        NumberSequenceSource numbers = new NumberSequenceSource(0, READERS * size - 1);
        env.fromSource(numbers, WatermarkStrategy.noWatermarks(), "numbers").uid("numbers")
                .map(new Pace(Long.parseLong(args[1]))).uid("pace").name("pace")
                .keyBy(n -> n / size * KEYS + n % KEYS)
                .process(new Count(size, Long.parseLong(args[2]))).uid("count").name("count")
                .sinkTo(new DiscardingSink<>()).uid("out").name("out");
        env.execute("numbers");
    }

    static void pause(long micros) throws InterruptedException {
        if (micros > 0) {
            Thread.sleep(micros / 1000, (int) (micros % 1000) * 1000);
        }
    }

    /** So slow that the numbers outlast every process. */
    static final class Pace extends RichMapFunction<Long, Long> {
        private final long micros;
        private transient boolean later;

        Pace(long micros) {
            this.micros = micros;
        }

        @Override
        public Long map(Long n) throws Exception {
            if (!later) {
                System.out.println("FIRST " + n);
                later = true;
            }
            pause(micros);
            return n;
        }
    }

    /** Numbers so far, by key. */
    static final class Count extends KeyedProcessFunction<Long, Long, Long> {
        private final long size;
        private final long micros;
        private transient ValueState<Long> count;
        private transient Set<Long> seen;

        Count(long size, long micros) {
            this.size = size;
            this.micros = micros;
        }

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Long.class));
            seen = new HashSet<>();
        }

        @Override
        public void processElement(Long n, Context context, Collector<Long> out) throws Exception {
            pause(micros);
            Long before = count.value();
            if (seen.add(context.getCurrentKey())) {
                System.out.println("STATE " + n / size + " " + n % KEYS + " " + n + " " + (before == null ? 0 : before));
            }
            count.update(before == null ? 1 : before + 1);
            out.collect(count.value());
        }
    }
}
