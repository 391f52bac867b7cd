// The views of the page: {path, title, section, icon, key (after `g`), load}. Without a title it is not in the navigation.
// A view is a module that exports `title` (a text, or a function of its parameters) and `view`, a component whose props are
// the parameters of the address: `#/clients?sort=lag` is view({sort: "lag"}).

export const VIEWS = [
  { path: "/", title: "Overview", section: "", icon: "overview", key: "o", load: () => import("./overview.js") },
  { path: "/clients", title: "Clients", section: "", icon: "clients", key: "c", load: () => import("./clients.js") },
  { path: "/client", parent: "/clients", load: () => import("./client.js") },
];

export const viewAt = (path) => VIEWS.find((view) => view.path === path);
