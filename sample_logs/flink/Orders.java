import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * Orders per customer: topic "orders" -> count by customer -> nowhere, on a mini-cluster in this process.
 *
 * <p>Orders BROKER FOLDER LAST [CHECKPOINT CLAIM|NO_CLAIM]: checkpoints go to FOLDER; while checkpoint LAST is being
 * written, when one half of the state is stored and the other is not, the whole process is halted (exit 137). With
 * CHECKPOINT the job starts from there.
 */
public final class Orders {
    private static final int PARTITIONS = 4; // a reader for each: one for two would read one to its end first
    private static final int PARALLELISM = 2;
    private static final long MILLIS_PER_ORDER = 5;

    public static void main(String[] args) throws Exception {
        Configuration conf = new Configuration();
        conf.setString("execution.checkpointing.storage", "filesystem");
        conf.setString("execution.checkpointing.dir", args[1]);
        conf.setString("execution.checkpointing.interval", "1s");
        conf.setString("execution.checkpointing.num-retained", "3");
        conf.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        conf.setString("execution.checkpointing.incremental", "true");
        conf.setString("execution.checkpointing.data-inline-threshold", "1kb"); // some state in files, some inlined
        conf.setString("state.backend.type", "rocksdb");
        if (args.length > 3) {
            conf.setString("execution.state-recovery.path", args[3]);
            conf.setString("execution.state-recovery.claim-mode", args[4]);
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(PARALLELISM, conf);
        KafkaSource<String> orders = KafkaSource.<String>builder()
                .setBootstrapServers(args[0])
                .setTopics("orders")
                .setGroupId("orders-count")
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setValueOnlyDeserializer(new SimpleStringSchema())
                .build();
        env.fromSource(orders, WatermarkStrategy.noWatermarks(), "orders").uid("orders").setParallelism(PARTITIONS)
                .map(new Pace()).uid("pace").name("pace").setParallelism(PARTITIONS)
                .keyBy(customer -> customer)
                .process(new Count()).uid("count").name("count")
                .map(new Crash(Long.parseLong(args[2]))).uid("crash").name("crash")
                .sinkTo(new DiscardingSink<>()).uid("out").name("out");
        env.execute("orders");
    }

    /** So slow that the topic outlasts the job. */
    static final class Pace extends RichMapFunction<String, String> {
        @Override
        public String map(String customer) throws Exception {
            Thread.sleep(MILLIS_PER_ORDER);
            return customer;
        }
    }

    /** Orders so far, by customer. */
    static final class Count extends KeyedProcessFunction<String, String, Long> {
        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Long.class));
        }

        @Override
        public void processElement(String customer, Context context, Collector<Long> out) throws Exception {
            Long before = count.value();
            count.update(before == null ? 1L : before + 1L);
            out.collect(count.value());
        }
    }

    /** Halts the process in checkpoint `last`, once the other subtask had the time to store its half. */
    static final class Crash extends RichMapFunction<Long, Long> implements CheckpointedFunction {
        private final long last;

        Crash(long last) {
            this.last = last;
        }

        @Override
        public Long map(Long count) {
            return count;
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            if (context.getCheckpointId() >= last && getRuntimeContext().getTaskInfo().getIndexOfThisSubtask() == 1) {
                Thread.sleep(700);
                Runtime.getRuntime().halt(137);
            }
        }

        @Override
        public void initializeState(FunctionInitializationContext context) {}
    }
}
