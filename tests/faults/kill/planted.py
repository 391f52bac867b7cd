"""Faults of the session journal and of acknowledgements, as `tests.faults.planted` has those of the log."""

from tests.faults.planted import Planted

SESSIONS = "tests/faults/kill/test_sessions.py"
SMALL = "tests/shards/recovery/test_journal_compaction.py"


PLANTED = [
    Planted(
        "PUBREL leaves before PUBREC is written down", "rumq/mqtt/kernels/short_acks.py",
        "if head == 0x50:  # before PUBREL: the client forgets the message with it",
        "if False:",
        f"{SESSIONS}::test_qos_2_goes_on_with_pubrel_once_pubrel_was_sent",
    ),
    Planted(
        "PUBCOMP leaves before the id's release is written down", "rumq/mqtt/kernels/short_acks.py",
        "note(noted_of(wire), 0x62, pid)\n                wire.ack_parts |= journal_bit(wire)",
        "note(noted_of(wire), 0x62, pid)",
        f"{SESSIONS}::test_an_inbound_qos_2_message_is_taken_once",
    ),
    Planted(
        "CONNACK waits for nothing", "rumq/session/handshake/connect.py",
        "connected.promise(encode(connack, client.version), barrier=True)",
        "connected.send(connack)",
        f"{SESSIONS}::test_a_session_is_there_as_soon_as_connack_said_so",
    ),
    Planted(
        "SUBACK waits for nothing", "rumq/session/protocol/subscribe.py",
        "responder.promise(explained(client, p.Suback(packet_id, tuple(reasons)), why), barrier=True)",
        "client.transport.write(explained(client, p.Suback(packet_id, tuple(reasons)), why))",
        f"{SESSIONS}::test_a_session_and_what_came_for_it_survive",
    ),
    Planted(
        "UNSUBSCRIBE is not written down", "rumq/session/protocol/subscribe.py",
        "client.broker.journal.unsubscribed(client.session, asked)",
        "pass",
        f"{SESSIONS}::test_an_unsubscription_is_remembered",
    ),
    Planted(
        "packet ids of inbound QoS 2 are not looked for in the log", "rumq/shards/recovery/restore.py",
        "                add_tags(state, log_tags(self._store, partition, state.tags_from[partition.index]))\n",
        "                pass\n",
        f"{SESSIONS}::test_an_inbound_qos_2_message_is_taken_once",
    ),
    Planted(
        "a checkpoint does not say which inbound ids are open", "rumq/shards/recovery/restore.py",
        "            recorder.qos2_changed[session.number] = session\n",
        "            pass\n",
        f"{SESSIONS}::test_tags_are_right_however_often_a_packet_id_is_used",
    ),
    Planted(
        "QoS 0 is sent again", "rumq/session/flow_control/delivery_window.py",
        "max(first, blob.first_at_or_after(redelivered_below))",
        "max(first, 0)",
        f"{SESSIONS}::test_qos_0_comes_at_most_once",
    ),
    Planted(
        "what may have been sent before carries no DUP", "rumq/session/flow_control/delivery_window.py",
        "self.number(blob, first, stop, code, redelivered_below)",
        "self.number(blob, first, stop, code)",
        f"{SESSIONS}::test_qos_1_that_may_have_come_before_says_so",
    ),
    Planted(
        "the in-flight window is not restored", "rumq/shards/recovery/restore.py",
        "session.window = replayed.window",
        "session.window = None",
        f"{SESSIONS}::test_what_was_sent_and_not_acknowledged_comes_again_with_its_packet_id",
    ),
    Planted(
        "a will is forgotten", "rumq/session/journal/recorder.py",
        "            self.entries.append(will_entry(session))",
        "            pass",
        f"{SESSIONS}::test_a_will_is_sent_after_the_restart",
    ),
    Planted(
        "expiry does not count while the broker is down", "rumq/shards/recovery/restore.py",
        "        expires_in = max(0.0, expires_in - away)",
        "        expires_in += 3600",
        f"{SESSIONS}::test_a_session_expires_while_the_broker_is_down",
    ),
    Planted(
        "what a share handed out is handed out no more", "rumq/shards/recovery/checkpoint.py",
        "                returned += [\n",
        "                _ = [\n",
        f"{SESSIONS}::test_a_shared_subscription_hands_everything_to_somebody",
    ),
    Planted(
        "a replay begins anew", "rumq/session/journal/replayed_state.py",
        "            cursors[partition] = max(cursors[partition], lsns[-1] + 1)",
        "            pass",
        f"{SESSIONS}::test_a_replay_goes_on_where_it_was",
    ),
    Planted(
        "retained messages are not looked for in the log", "rumq/shards/recovery/restore.py",
        "                    view.update(partition.index, chunk, partition.topic_names)",
        "                    pass",
        f"{SESSIONS}::test_retained_messages_survive_and_so_does_their_end",
    ),
    Planted(
        "an acknowledgement does not wait for its group", "rumq/session/connection/pending_acks.py",
        "            if lsn > committed:\n                break\n",
        "",
        "tests/shards/write_path/test_group_commit.py::test_an_acknowledgement_waits_for_its_own_group",
    ),
    # The journal's snapshots
    Planted(
        "what is before a snapshot goes before that is durable", "rumq/shards/recovery/journal_snapshot.py",
        "        if self._ended_lsn is None or self._journal.committed_lsn < self._ended_lsn[1]:\n",
        "        if self._ended_lsn is None:\n",
        "tests/shards/recovery/test_journal_power_loss.py",
    ),
    Planted(
        "a journal with little in it is written anew at each turn", "rumq/shards/recovery/journal_snapshot.py",
        "        if growth > max(min(least, half), 2 * self._bytes):",
        "        if growth > 0:",
        f"{SMALL}::test_snapshots_write_no_more_than_the_journal_does_without_them",
    ),
    Planted(
        "a snapshot is due by the floor alone", "rumq/shards/recovery/journal_snapshot.py",
        "        if growth > max(min(least, half), 2 * self._bytes):",
        "        if growth > min(least, half):",
        f"{SMALL}::test_snapshots_write_no_more_than_the_journal_does_without_them",
    ),
    Planted(
        "a snapshot shares its segment with what is before it", "rumq/shards/recovery/journal_snapshot.py",
        "        group = self._journal.take_roll(now_us)\n",
        "        group = None\n",
        f"{SMALL}::test_the_journal_of_a_small_broker_takes_the_floor_and_little_more",
    ),
    Planted(
        "a start takes the journal that it finds for small", "rumq/shards/recovery/restore.py",
        "        self.journal.snapshot_restored(*state.snapshot)\n",
        "",
        f"{SMALL}::test_runs_that_end_soon_leave_no_more_than_long_ones",
    ),
    Planted(
        "the manifest forgets segments whose files are left", "commitlog/format/manifest.py",
        '        gone = {name for name in gone if not self._files.exists(f"{directory}/{name}")}\n',
        "",
        "tests/commitlog/format/test_manifest.py",
    ),
    Planted(
        "the manifest keeps a line of each segment that was", "commitlog/format/manifest.py",
        'if edit["edit"] == "first" and len(self.edits) >= self._compact_at:',
        "if False:",
        "tests/commitlog/format/test_manifest.py",
    ),
    Planted(
        "after a kill of all shards the home of a group is not told what members have had",
        "router/recovery.py",
        "            share.recent.extend(had())\n",
        "            had()\n",
        "tests/cli/test_shards.py::test_what_members_of_shared_groups_have_had_does_not_come_again_after_a_kill",
    ),
]  # fmt: skip
