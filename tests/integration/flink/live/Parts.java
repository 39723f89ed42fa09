import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.DefaultRollingPolicy;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;

/**
 * Numbers written as lines to files, on a mini-cluster in this process, until it is killed.
 *
 * <p>Parts SIZE READ FILES FOLDER KEY=VALUE...: so many numbers, READ microseconds each; the sink's folder; Flink's
 * settings KEY=VALUE. FILES closed: a checkpoint closes every file, so that it holds as pending what is renamed once it
 * is complete; open: files stay open, and a checkpoint holds how much of them counts.
 */
public final class Parts {
    public static void main(String[] args) throws Exception {
        long micros = Long.parseLong(args[1]);
        Configuration conf = new Configuration();
        for (int i = 4; i < args.length; i++) {
            String[] setting = args[i].split("=", 2);
            conf.setString(setting[0], setting[1]);
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(2, conf);
        NumberSequenceSource numbers = new NumberSequenceSource(0, Long.parseLong(args[0]) - 1);
        FileSink<Long> files = FileSink.<Long>forRowFormat(new Path(args[3]), new SimpleStringEncoder<>())
                .withBucketAssigner(new BasePathBucketAssigner<>())
                .withRollingPolicy(args[2].equals("closed")
                        ? OnCheckpointRollingPolicy.build()
                        : DefaultRollingPolicy.builder().build())
                .build();
        env.fromSource(numbers, WatermarkStrategy.noWatermarks(), "numbers").uid("numbers")
                .map(n -> {
                    Thread.sleep(micros / 1000, (int) (micros % 1000) * 1000);
                    return n;
                }).returns(Long.class).uid("pace").name("pace")
                .sinkTo(files).uid("out").name("out");
        env.execute("parts");
    }
}
