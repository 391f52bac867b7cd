// Seal and trim: buttons whose dialogs say what is lost.
import { ActionButton } from "../parts/action.js";
import { html } from "../parts/dom.js";
import { bytes, count, plural, time } from "../parts/format.js";

// row: of a partition
export function SealButton({ row, after }) {
  return html`<${ActionButton} label="Seal …" confirm="Seal" kind="small" name="seal" title=${`Seal the active segment of ${row.stream} ${row.partition}`} after=${after}
    body=${{ stream: row.stream, partition: row.partition }}
    explain=${html`<p>The active segment is finished, checksummed and indexed, and a new one begins. <b>Nothing is lost</b> and no client notices.</p>
      <p>Only finished segments can be exported, trimmed or removed by retention.</p>`}
    done=${({ done }) => (done ? "The segment is sealed, a new one has begun." : ["There is nothing to seal: the partition is not here.", "warn"])}/>`;
}

// row: of a finished segment; it goes, and all before it. partition: its partition, may be unknown for a moment
export function TrimButton({ row, partition, after }) {
  const first = partition ? partition.first_lsn : 0;
  const records = Math.max(0, row.end_lsn - first);
  return html`<${ActionButton} label="Trim …" confirm="Trim" kind="small" danger name="trim" title=${`Remove the records of ${row.stream} ${row.partition} below ${count(row.end_lsn)}`} after=${after}
    body=${{ stream: row.stream, partition: row.partition, below_lsn: row.end_lsn }}
    explain=${html`<p>This segment (${bytes(row.bytes)}) and all before it are deleted from the disk: <b>${plural(records, "record")}</b>${partition && partition.first_time_us ? `, since ${time(partition.first_time_us)}` : ""}.
        It cannot be undone.</p>
      <p><b>Lost:</b> replays and Spark no longer see these records; sessions that have not read them lose them, counted in the ledger as “retention”.</p>
      <p><b>Kept:</b> retained messages (a segment stays until they are written elsewhere), and what has been exported to the lake.</p>`}
    done=${({ done, why }) => (done ? `${plural(done, "file")} removed.` : [`Nothing was removed${why ? `: ${why}` : ""}.`, "warn"])}/>`;
}
