// The views of the page: {path, title, section, icon, key (after `g`), load}. Without a title it is not in the navigation.
// A view is a module that exports `title` (a text, or a function of its parameters) and `view`, a component whose props are
// the parameters of the address: `#/clients?sort=lag` is view({sort: "lag"}).

export const VIEWS = [
  { path: "/", title: "Overview", section: "", icon: "overview", key: "o", load: () => import("./overview.js") },
  { path: "/clients", title: "Clients", section: "", icon: "clients", key: "c", load: () => import("./clients.js") },
  { path: "/client", parent: "/clients", load: () => import("./client.js") },
  { path: "/groups", title: "Shared groups", section: "", icon: "groups", key: "g", load: () => import("./groups.js") },
  { path: "/topics", title: "Topics", section: "Data", icon: "topics", key: "t", load: () => import("./topics.js") },
  { path: "/topic", parent: "/topics", load: () => import("./topic.js") },
  { path: "/retained", title: "Retained", section: "Data", icon: "records", key: "r", load: () => import("./retained.js") },
  { path: "/queues", title: "Queues", section: "Data", icon: "queues", key: "q", load: () => import("./queues.js") },
  { path: "/queue", parent: "/queues", load: () => import("./queue.js") },
  { path: "/kafka-groups", title: "Kafka groups", section: "Data", icon: "groups", key: "k", role: "administer", load: () => import("./kafka_groups.js") },
  { path: "/kafka-group", parent: "/kafka-groups", load: () => import("./kafka_group.js") },
  { path: "/streams", title: "Streams", section: "Data", icon: "streams", key: "s", load: () => import("./streams.js") },
  { path: "/stream", parent: "/streams", load: () => import("./stream.js") },
  { path: "/exports", title: "Exports", section: "Data", icon: "exports", key: "x", load: () => import("./exports.js") },
  { path: "/shards", title: "Shards", section: "Broker", icon: "shards", key: "h", load: () => import("./shards.js") },
  { path: "/cluster", title: "Cluster", section: "Broker", icon: "cluster", key: "n", load: () => import("./cluster.js") },
  { path: "/bridges", title: "Bridges", section: "Broker", icon: "bridges", key: "d", load: () => import("./bridges.js") },
  { path: "/events", title: "Events", section: "Broker", icon: "events", key: "e", load: () => import("./events.js") },
  { path: "/settings", title: "Settings", section: "Broker", icon: "streams", key: "i", role: "administer", load: () => import("./settings.js") },
  { path: "/bans", title: "Bans", section: "Broker", icon: "bans", key: "b", load: () => import("./bans.js") },
  { path: "/traces", title: "Traces", section: "Broker", icon: "traces", key: "p", load: () => import("./traces.js") },
  { path: "/console", title: "MQTT console", section: "Tools", icon: "console", key: "m", load: () => import("./console.js") },
  { path: "/access", title: "Access", section: "Tools", icon: "access", key: "a", role: "administer", load: () => import("./access.js") },
];

export const viewAt = (path) => VIEWS.find((view) => view.path === path);
