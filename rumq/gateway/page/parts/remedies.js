// What to do about a warning or an error of the broker: a sentence, and where on this page it can be done.
// docs/reference/events.md has every event; tests/page/remedies.test.mjs holds that each of them that is a warning or an error is here.
import { link } from "./router.js";

const FREE = "Make room on the disk, add disk, or keep records for less time (log.retention_bytes_max, log.retention_seconds_max); a trim makes room at once.";
const CLIENT = (fields) => fields.client_id && ["The client", link("/client", { id: fields.client_id })];
const STREAM = (fields) => fields.stream && ["The stream", link("/stream", { stream: fields.stream })];
const STREAMS = () => ["Streams", link("/streams")];
const SHARDS = () => ["Shards", link("/shards")];
const CLUSTER = () => ["Cluster", link("/cluster")];
const BANS = () => ["Bans", link("/bans")];
const CONNECTS_BROKER = "Nothing, if it ends soon: it is tried again. Else see whether the broker runs, and what `why` says.";
const BUG = "This is a fault of rumq: report it with the broker's log (CONTRIBUTING.md). Everybody else is served.";
const RESTARTS = "It is started again by itself. If it happens again, the broker's log before it says why.";
const REPAIRED = "The shard's leader repairs it by itself; if it stays, look at the disk of this node.";
const STORED = "Restore what is missing from a backup (rumqd restore), or go on without it.";
const CONNECTS = "Nothing, if it ends soon: it is tried again. Else look at the network between the nodes, and at the other node.";

// event -> [what to do, (fields) -> [text of the link, href] or nothing]
const REMEDIES = {
  "kernels.plain": ["Install from a wheel, or with a C compiler: without compiled kernels the broker is several times slower."],
  "modules.stale": ["The edits of the modules that it names are not in use: run the command that it names, and restart the broker."],
  "certificate.refused": ["Put a certificate and the key that belongs to it into the files that it names: they are read again by themselves. Until then the old ones are used."],
  "listener.rate_reached": ["Nothing, if a crowd of devices comes back. Else see who the address is and ban it, or raise listener.connections_per_second_max.", BANS],
  "settings.refused": ["Correct the setting that it names (rumqd check says all of them), and reload.", SHARDS],
  "orders.restored": ["Nothing, if these are still wanted. Else lift bans, end traces, end the drain.", BANS],
  "shard.detoured": [CONNECTS, CLUSTER],
  "shard.lost": ["It is opened again by itself. If it stays away, see whether that shard runs.", SHARDS],
  "shard.missing": ["Start the nodes that have its copies; see who leads it.", CLUSTER],
  "shard.waits_ended": ["Start the nodes that have the missing shard's copies: the clients connect again by themselves.", CLUSTER],
  "shard.died": [RESTARTS, SHARDS],
  "shard.silent": ["The service manager restarts the broker unless the loop turns again. A disk or file system that hangs is the usual reason.", SHARDS],
  "shard.crashing": ["Look at the reason in the broker's log; the data directory may be damaged: rumqd log verify.", SHARDS],
  "shard.failed": [BUG, SHARDS],
  "shard.link_failed": [BUG, SHARDS],
  "task.failed": [BUG],
  "connection.shed": ["Many connections of one network without a login: ban the address, or close the port to it.", BANS],
  "listener.overloaded": ["Raise listener.connections_max (and LimitNOFILE), or find out who connects so often.", () => ["Clients", link("/clients", { sort: "since" })]],
  "listener.open": ["Configure users (rumqd init), or bind the listener to 127.0.0.1."],
  "listener.closed": ["Configure users (rumqd user add), or set auth.anonymous."],
  "listener.accept_failed": ["Raise the limit of open files (LimitNOFILE of systemd, ulimit -Hn).", SHARDS],
  "connection.refused": ["The sentence says which side is at fault: the client's TLS, its certificate, or what connects there by mistake."],
  "client.refused": ["The sentence says why: correct the client. One that does not stop can be banned.", BANS],
  "permission.refused": ["Allow it in the rules file, or correct the client; Access says which rule decides.",
    (fields) => ["Access", link("/access", { user: fields.user, client: fields.client_id, action: fields.action, topic: fields.topic })]],
  "refusals.summed": ["One address is refused again and again: correct its clients, or ban it.", BANS],
  "secrets.exposed": ["chmod 600 the file."],
  "data.exposed": ["Run the chmod that it names."],
  "mosquitto.left_out": ["Set its counterpart in config.toml by hand if you need it: docs/guides/migrate-from-mosquitto.md."],
  "mosquitto.listener_closed": ["Set its counterpart in config.toml by hand; then the listener opens: docs/guides/migrate-from-mosquitto.md."],
  "auth.failed": ["See whether the server that it asks answers; the clients try again."],
  "client.crashed": [BUG, CLIENT],
  "consumer.lagging": ["Its page says what holds it.", CLIENT],
  "trace.export_failed": ["See whether the OTLP endpoint answers; spans are lost meanwhile."],
  "log.recovered": ["Nothing: what was acknowledged is there. If the broker was not killed on purpose, see why it ended.", STREAM],
  "log.gap": ["Records are lost. Look at the disk; a backup, a mirror or the lake may have them (docs/guides/backup-and-restore.md).", (fields) => CLIENT(fields) || STREAM(fields)],
  "log.missing": [STORED, STREAMS],
  "log.failed": ["Look at the disk (dmesg, SMART): the system call failed. It is retried.", STREAM],
  "log.offline": ["The sentence says what to do; the partition is tried again every second.", STREAM],
  "log.full": [FREE, STREAMS],
  "log.unwritten": ["Nothing was acknowledged of it: publishers send it again."],
  "log.unreachable": ["Put the data directory back where it was."],
  "clock.jumped": ["Nothing after a suspend; else see to the time service (NTP)."],
  "retention.held": ["See to the time service (NTP); retention by age goes on once the clock is steady. Set a bound by size if the disk is small.", STREAMS],
  "retained.full": ["Delete retained messages that nobody needs, or raise retained_bytes_max.", () => ["Retained", link("/retained")]],
  "topic.refused": ["Find out who makes so many topics, or raise topics_max; topics of no use can be deleted.", () => ["Topics", link("/topics", { sort: "topic" })]],
  "publish.slowed": ["The disk is slower than what is published: see its plot; a quota slows the busiest.", () => ["Clients by rate", link("/clients", { sort: "rate" })]],
  "disk.filling": [FREE, STREAMS],
  "disk.low": [FREE, STREAMS],
  "lake.gap": ["They are lost to the lake: read them from a backup, a mirror, or the log's own copies.", () => ["Exports", link("/exports")]],
  "lake.failed": ["See whether the lake's disk or store answers and has room; the export is retried.", () => ["Exports", link("/exports")]],
  "lake.died": [RESTARTS, () => ["Exports", link("/exports")]],
  "mirror.failed": ["See whether source and target answer; the same batch is tried again."],
  "mirror.gap": ["They are not at the target: copy them from the source's backup if they are needed."],
  "flight.refused": ["The sentence says why: correct the caller's user, or the rules."],
  "flight.failed": ["The log could not be read: look at the disk; or it is a fault of rumq, to report."],
  "flight.died": [RESTARTS],
  "kafka.refused": ["The sentence says why: correct the client's user, or the rules."],
  "kafka.gap": ["They are lost to this reader: read them from a backup, a mirror, or another node's copy."],
  "kafka.failed": ["The log could not be read: look at the disk; or it is a fault of rumq, to report."],
  "kafka.commits_damaged": ["Some groups may read again what they had read. Look at the disk; the file is kept beside."],
  "kafka.commits_failed": ["Make room in the data directory, or look at the disk: clients try again by themselves."],
  "kafka.groups_refused": ["The sentence says why: run one Kafka server on a data directory, which its user can write to; in a cluster, upgrade the node that it names."],
  "kafka.died": [RESTARTS],
  "cluster.refused": ["The sentence says what to do; then start the node again.", CLUSTER],
  "cluster.insecure": ["Give the nodes certificates (rumqd certs node) and set cluster.insecure to false."],
  "cluster.unnamed_certificates": ["Give each node a certificate with its name (rumqd certs node), and take the setting back."],
  "cluster.certificate_refused": ["See what answers at that address; renew the node's certificate (rumqd certs node).", CLUSTER],
  "cluster.agent_unreachable": ["See who owns the socket, and its permissions: the agent and the shards run as the same user."],
  "cluster.several_logs": ["Begin with one data directory: move the others away.", CLUSTER],
  "cluster.layouts_differ": ["Give all nodes the same numbers of partitions.", CLUSTER],
  "cluster.etcd_lost": ["Bring etcd back: messages flow, but no leader can change.", CLUSTER],
  "cluster.etcd_old": ["Upgrade etcd."],
  "cluster.epoch_back": ["Nothing is lost. See why etcd was restored from an old snapshot.", CLUSTER],
  "cluster.disk_restored": [REPAIRED, CLUSTER],
  "cluster.record_lost": ["Restore etcd's snapshot.", CLUSTER],
  "cluster.copy_damaged": [REPAIRED, CLUSTER],
  "cluster.copy_doubted": [REPAIRED, CLUSTER],
  "cluster.copies_disagree": ["Start the replicas that are missing, with their disks, or choose a copy: docs/guides/cluster.md, \"When copies disagree\".", CLUSTER],
  "cluster.copy_failed": ["Look at the disk of this node: full, slow, or broken.", CLUSTER],
  "cluster.copy_unreadable": ["Nothing at once: the leader is read instead. Look at the disk of this node.", CLUSTER],
  "cluster.deposed": ["Nothing: another node leads.", CLUSTER],
  "cluster.quorum_lost": ["Start the nodes that are missing.", CLUSTER],
  "cluster.clients_sent_away": ["Start the nodes that are missing, or repair the network between them.", CLUSTER],
  "cluster.waits_ended": ["Start the nodes that are missing, or repair the network between them.", CLUSTER],
  "cluster.resigns": ["Look at the disk of this node: full, slow, or broken.", CLUSTER],
  "cluster.disk_unwell": ["Look at the disk of this node: full, slow, or broken.", CLUSTER],
  "cluster.follower_lost": [CONNECTS, CLUSTER],
  "cluster.feed_failed": ["Look at the disk of this node.", CLUSTER],
  "cluster.clock_off": ["See to the time service (NTP) of both nodes.", CLUSTER],
  "gateway.overloaded": ["One network has many connections to this port: a probe or a dashboard that asks too often, or an attack."],
  "gateway.refused": ["A wrong token: see whose it is; tokens are made with rumqd token add."],
  "gateway.failed": [BUG],
  "relay.refused": ["Give the token the role that it needs (rumqd token add), or correct the client."],
  "history.put_aside": ["Nothing: plots begin anew. Look at the disk if it comes again."],
  "history.unwritten": ["Look at the disk and at who may write to the data directory: plots are kept in memory only."],
  "gateway.died": [RESTARTS],
  "queues.unavailable": [CONNECTS_BROKER],
  "queues.channel_waits": [CONNECTS_BROKER],
  "queues.dead_letters_wait": [CONNECTS_BROKER],
  "queues.delays_wait": [CONNECTS_BROKER],
  "queues.depth_unknown": [CONNECTS_BROKER],
  "queues.dropped": ["Consume faster, or give the queue more room (records_max, bytes_max), or have it refuse instead."],
  "grpc.died": [RESTARTS],
  "grpc.failed": [BUG],
  "bridge.doubtful": ["Look why that broker lost the session (expiry, a new disk). Messages that may be there twice have the user property rumq-doubtful."],
  "bridge.gap": ["Give the stream more room or time (retention) at that broker, or have the line back sooner."],
  "bridge.lost": ["Nothing, if the other broker is away: messages wait in the sessions. Else correct the address, the user or the TLS files of the bridge."],
  "bridge.refused": ["Give the bridge's user the right to publish there, or take the topic out of the bridge: `why` is the other broker's reason."],
  "bridge.unforgotten": ["Nothing, if the session may wait until it expires. Else end it at that broker: its client id begins with rumq-bridge/."],
  "bridges.died": [RESTARTS],
  "bridges.refused": ["The sentence says why: upgrade the node that it names, or let the broker's user read and rename the file."],
  "functions.died": [RESTARTS],
  "function.failed": ["Correct the function: `why` is the last line of its traceback. What its rule says happens to the batch meanwhile."],
  "function.restarted": ["Nothing, if it ends soon: the batch is tried once more. Else correct the function, or give it more time or memory (timeout_ms, memory_bytes_max)."],
  "function.waits": [CONNECTS_BROKER],
  "function.gap": [STORED],
};

// {line, text, href} of an event; null: there is nothing to do
export function remedyOf(event) {
  const found = REMEDIES[event.event];
  if (!found) return null;
  const [text, href] = found[1]?.(event.fields ?? {}) || [];
  return { line: found[0], text, href };
}

export const known = () => Object.keys(REMEDIES);
