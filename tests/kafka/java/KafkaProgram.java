// The Java client of Kafka as a program: `read`, `admin`, `produce`, `group`. Prints a line of JSON for each record.

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class KafkaProgram {
    private static final long POLLS_MAX_MS = Long.getLong("polls.max.ms", 50_000);

    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[1]);
        for (int each = 4; each < args.length; each++) {
            String[] pair = args[each].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        String topic = args[2];
        switch (args[0]) {
            case "read" -> read(settings, topic, Integer.parseInt(args[3]));
            case "admin" -> admin(settings, topic);
            case "produce" -> produce(settings, topic);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static void read(Properties settings, String topic, int wanted) {
        settings.putIfAbsent("auto.offset.reset", "earliest");
        settings.putIfAbsent("enable.auto.commit", "false");
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            if (settings.containsKey("group.id")) {
                consumer.subscribe(List.of(topic));
            } else {
                List<TopicPartition> partitions = new ArrayList<>();
                consumer.partitionsFor(topic).forEach(each -> partitions.add(new TopicPartition(topic, each.partition())));
                consumer.assign(partitions);
            }
            long until = System.currentTimeMillis() + POLLS_MAX_MS;
            int found = 0;
            while (found < wanted && System.currentTimeMillis() < until) {
                for (var record : consumer.poll(Duration.ofMillis(500))) {
                    System.out.println(line(record));
                    found++;
                }
            }
            if (settings.containsKey("group.id")) {
                consumer.commitSync();
            }
        }
    }

    private static String line(ConsumerRecord<byte[], byte[]> record) {
        StringBuilder headers = new StringBuilder();
        for (Header each : record.headers()) {
            headers.append(headers.length() == 0 ? "" : ",")
                    .append("[\"").append(each.key()).append("\",\"").append(encoded(each.value())).append("\"]");
        }
        String value = record.value() == null ? "null" : '"' + encoded(record.value()) + '"';
        return String.format("{\"partition\":%d,\"offset\":%d,\"time\":%d,\"key\":\"%s\",\"value\":%s,\"headers\":[%s]}",
                record.partition(), record.offset(), record.timestamp(), encoded(record.key()), value, headers);
    }

    private static String encoded(byte[] data) {
        return Base64.getEncoder().encodeToString(data);
    }

    private static void admin(Properties settings, String topic) throws Exception {
        try (Admin admin = Admin.create(settings)) {
            var topics = new TreeSet<>(admin.listTopics().names().get());
            var partitions = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions();
            Map<TopicPartition, OffsetSpec> asked = new TreeMap<>((a, b) -> a.partition() - b.partition());
            partitions.forEach(each -> asked.put(new TopicPartition(topic, each.partition()), OffsetSpec.latest()));
            var offsets = new ArrayList<Long>();
            var found = admin.listOffsets(asked).all().get();
            asked.keySet().forEach(each -> offsets.add(found.get(each).offset()));
            System.out.printf("{\"topics\":[\"%s\"],\"offsets\":%s,\"nodes\":%d,\"cluster\":\"%s\"}%n",
                    String.join("\",\"", topics), offsets, admin.describeCluster().nodes().get().size(),
                    admin.describeCluster().clusterId().get());
        }
    }

    private static void produce(Properties settings, String topic) throws Exception {
        settings.putIfAbsent("delivery.timeout.ms", "10000");
        settings.putIfAbsent("request.timeout.ms", "5000");
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.send(new ProducerRecord<>(topic, "x".getBytes(StandardCharsets.UTF_8))).get();
            System.out.println("{\"refused\":\"\"}");
        } catch (ExecutionException | KafkaException fault) {
            System.out.printf("{\"refused\":\"%s: %s\"}%n", fault.getCause().getClass().getSimpleName(),
                    String.valueOf(fault.getCause().getMessage()).replace("\"", "'"));
        }
    }
}
