// Topics: the tree, level by level with rates and last values, or a list by filter, the busiest first.
import { get } from "../parts/api.js";
import { html, usePoll, useSettled, useState } from "../parts/dom.js";
import { count, rate } from "../parts/format.js";
import { LastValue } from "../parts/last_value.js";
import { Name } from "../parts/name.js";
import { Restricted } from "../parts/restricted.js";
import { link, setParams } from "../parts/router.js";
import { PAGE_ROWS, Search, Table } from "../parts/table.js";
import { Fault, Heading } from "../parts/view_place.js";
import { TopicTree } from "./topic_tree.js";

export const title = "Topics";
const SECONDS = 5;
export const MANY = 50_000; // topics: from here on a list is not asked for again by itself, since the shards visit all of them

// "plant" is searched as "plant/#", which has "plant" itself too; who writes a wildcard means it
export const filterOf = (text) => (!text || /[+#]/.test(text) ? text : `${text.replace(/\/$/, "")}/#`);

export function view({ topic = "", sort = "", offset = "0" }) {
  const [typed, setTyped] = useState(topic);
  const search = (text) => {
    setTyped(text);
    setParams({ topic: text, offset: null });
  };
  const isList = Boolean(topic || sort);
  const show = (params) => () => {
    if (!params.sort) setTyped("");
    setParams({ topic: params.sort ? topic : null, sort: params.sort ?? null, offset: null });
  };
  return html`<${Heading} title="Topics" line="What has been published, by topic. Each topic is a log of its own."/>
    <div class="tools">
      <${Search} value=${typed} onInput=${search} placeholder="Topic filter, such as plant/+/state"/>
      <div class="segmented" role="group" aria-label="Show">
        <button type="button" aria-pressed=${!isList} onClick=${show({})}>Tree</button>
        <button type="button" aria-pressed=${isList && sort !== "records"} onClick=${show({ sort: "rate" })}>By rate</button>
        <button type="button" aria-pressed=${sort === "records"} onClick=${show({ sort: "records" })}>By records</button>
      </div>
    </div>
    <${Restricted}/>
    ${isList ? html`<${TopicList} topic=${topic} sort=${sort || "rate"} offset=${Number(offset) || 0}/>` : html`<${TopicTree}/>`}`;
}

function TopicList({ topic, sort, offset }) {
  const filter = filterOf(useSettled(topic));
  const [many, setMany] = useState(false);
  const { data, error, loading, reload } = usePoll(async (signal) => {
    const found = await get("topics", { topic: filter, sort, offset, limit: PAGE_ROWS }, signal);
    setMany(found.topics.length + found.left_out + offset > MANY);
    return { ...found, turn: Date.now() };
  }, many ? 0 : SECONDS, [filter, sort, offset]);
  const columns = [
    { key: "topic", title: "Topic", sort: "topic", grow: true, cell: (row) => html`<${Name} text=${row.topic}/>` },
    { key: "rate", title: "Rate", help: "records a second, of the last one to two minutes", sort: "rate", number: true, cell: (row) => rate(row.records_per_second) },
    { key: "records", title: "Records", help: "published so far, also those that retention removed", sort: "records", number: true, cell: (row) => count(row.records) },
    { key: "stream", title: "Stream", wide: true, cell: (row) => `${row.stream} ${row.partition}` },
    { key: "value", title: "Last value", wide: true, cell: (row) => html`<${LastValue} topic=${row.topic} turn=${data.turn}/>` },
  ];
  return html`<${Fault} error=${error}/>
    ${many && html`<p class="notice">There are so many topics that this list is not refreshed by itself. <button type="button" class="small" disabled=${loading} onClick=${reload}>Refresh</button></p>`}
    <${Table} label="Topics" columns=${columns} rows=${data && data.topics} rowKey=${(row) => row.topic} rowHref=${(row) => link("/topic", { topic: row.topic })}
      sort=${sort} onSort=${(next) => setParams({ sort: next, offset: null })}
      offset=${offset} limit=${PAGE_ROWS} leftOut=${data ? data.left_out : 0} onOffset=${(next) => setParams({ offset: next || null }, { push: true })}
      empty=${topic ? "No topic matches this filter." : "Nothing has been published yet."}/>`;
}
