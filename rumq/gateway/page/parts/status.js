// What the broker last said of itself: asked by the header, shown by whoever wants it. {data, error}
import { store } from "./store.js";

export const status = store({ data: null, error: null });
