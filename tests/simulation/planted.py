"""Faults of shards working together, as `tests.faults.planted` has those of the log: schedules of fixed seeds find most
of them; for those that are too rare for that, a test does by hand what a schedule did once."""

from tests.faults.planted import Planted

SEEDS = "tests/simulation/test_simulation.py::test_what_a_schedule_has_found_once_stays_repaired"
SCHEDULES = "tests/simulation/test_simulation.py::test_schedules_of_fixed_seeds_keep_every_promise"
BUS = "tests/shards/bus/test_remote_partition.py"
RING = "tests/shards/bus/test_shared_ring.py"
LINK = "tests/shards/bus/test_bus_link.py"
FEED = "tests/router/matching/test_remote_feed.py"
FOUND = "tests/simulation/test_found.py"
MOVES = "tests/simulation/test_planned_moves.py"
CHECKPOINT = "tests/shards/recovery/test_checkpoint.py"
LATE = "tests/simulation/test_late_shards.py"
RUNS = f"{LATE}::test_what_a_next_run_wrote_in_the_place_of_what_was_shown_and_lost_is_delivered"
ENDS = "tests/scenarios/test_scenarios.py::test_the_router_says_what_the_transcript_says[share-elsewhere-ends]"

PLANTED = [
    # The bus
    Planted(
        "a message on the bus is lost", "rumq/shards/bus/record_forwarder.py",
        "        self._link.say(message, rows, *frames)\n",
        "        if message.base_lsn % 5 != 3:\n            self._link.say(message, rows, *frames)\n",
        SCHEDULES,
    ),
    Planted(
        "two messages on a link change places", "rumq/shards/bus/remote_partition.py",
        "self._commands.put(c.RemoteChunk(message.partition, chunk))",
        "self._commands.items.insert(0, c.RemoteChunk(message.partition, chunk))",
        SCHEDULES,
    ),
    Planted(
        "a ring between shards is written over before it was read", "rumq/shards/bus/shared_ring.py",
        "        taken = max(shared_memory.load(self._memory, self._put_taken_at), self._base)\n",
        "        taken = end\n",
        f"{RING}::test_what_one_side_puts_the_other_takes_in_the_same_order",
    ),
    Planted(
        "what the other side says it has taken of a ring is believed", "rumq/shards/bus/shared_ring.py",
        "        elif not end - self._size <= taken < end or count",
        "        elif count",
        f"{RING}::test_a_side_that_says_nonsense_of_what_it_has_taken_gets_nothing_overwritten",
    ),
    Planted(
        "bytes that nobody has put into a ring are taken", "rumq/shards/bus/shared_ring.py",
        "        if not begins or not 0 < count <= self._size:\n",
        "        if not 0 < count <= self._size:\n",
        f"{RING}::test_bytes_that_nobody_can_have_put_are_refused",
    ),
    Planted(
        "a ring is used though the other side has another one", "rumq/shards/bus/bus_link.py",
        "        if self.ring is not None and identity == self.ring.identity:\n",
        "        if self.ring is not None and identity:\n",
        f"{LINK}::test_a_ring_is_used_once_the_other_side_has_said_that_it_has_the_same",
    ),
    Planted(
        "bytes go on behind the end of a ring", "rumq/net/kernels/shared_memory.py",
        "                whole[: len(data) - first] = data[first:]\n",
        "",
        f"{RING}::test_what_one_side_puts_the_other_takes_in_the_same_order",
    ),
    Planted(
        "a publisher in another shard is acknowledged before its message is durable",
        "rumq/shards/bus/publish_receiver.py",
        "placed, lsn = self._appended, self._partition.committed_lsn",
        "placed, lsn = self._appended, self._partition.next_lsn",
        SCHEDULES,
    ),
    Planted(
        "lsns that a successor has given out again are taken for records that were shown here",
        "rumq/shards/bus/owner_run.py",
        "        if known not in (0, incarnation):\n",
        "        if known < 0:\n",
        BUS,
    ),
    Planted(
        "a shard that begins does not know of which run its positions are", "rumq/shards/recovery/startup.py",
        "                partition.run.known = runs.get(name, (0, 0))\n",
        "                partition.run.known = (0, 0)\n",
        RUNS,
    ),
    Planted(
        "the journal does not say of which runs its positions are", "rumq/shards/recovery/checkpoint.py",
        "[p.run.known if isinstance(p, RemotePartition) else (0, 0) for p in self._partitions]",
        "[]",
        CHECKPOINT,
    ),
    Planted(
        "positions of a run that lost its end are those of the log that has grown past them",
        "rumq/shards/recovery/fit_to_log.py",
        "        return min(partition.next_lsn, partition.run.same_below)\n",
        "        return partition.next_lsn\n",
        "tests/shards/recovery/test_fit_to_log.py",
    ),
    Planted(
        "what the journal has of a client that is away stays beyond what its owner wrote",
        "rumq/shards/bus/remote_partition.py",
        "                self._journal.recorder.left(session)  # what",
        "                pass  # what",
        BUS,
    ),
    Planted(
        "the journal is not told of the run of an owner that is met", "rumq/shards/bus/remote_partition.py",
        "            self._timers.next_turn(self._journal.write_checkpoint)\n",
        "            pass\n",
        BUS,
    ),
    Planted(
        "a checkpoint has the packet id of a message that is not in the log yet",
        "rumq/shards/bus/remote_partition.py",
        "            self._timers.next_turn(self._journal.write_checkpoint)\n",
        "            self._journal.write_checkpoint()\n",
        BUS,
    ),
    Planted(
        "a snapshot has the packet id of a message that is not in the log yet",
        "rumq/shards/recovery/late_shards.py",
        "        self._timers.next_turn(partial(self._write_snapshot, restorer))\n",
        "        self._write_snapshot(restorer)\n",
        "tests/shards/recovery/test_late_shards.py",
    ),
    Planted(
        "a run that has written nothing of a partition has the epoch of the next one", "commitlog/log/store.py",
        "        options = replace(options, epoch=max([options.epoch] + [each.recovered.epoch for each in found]))\n",
        "",
        "tests/commitlog/log/test_store.py",
    ),
    Planted(
        "a late reader merges into the main one without what it was sent",
        "rumq/session/journal/replayed_session.py",
        "[max(pair) for pair in zip_longest(main, late, fillvalue=0)]",
        "list(main)",
        "tests/session/journal/test_replayed_session.py",
    ),
    Planted(
        "what is dropped of an owner that began anew is not told to the home of the group",
        "rumq/shards/bus/remote_partition.py",
        "            if self._dropped is not None:\n",
        "            if self._dropped is None:\n",
        BUS,
    ),
    Planted(
        "what a member that left has not acknowledged counts as delivered while the home is away",
        "rumq/shards/peers/shared_groups.py",
        "            if not said and not effect.early:\n",
        "            if said and not effect.early:\n",
        "tests/shards/peers/test_shared_groups.py",
    ),
    Planted(
        "what a home assigned just before it was lost is delivered, and assigned again",
        "rumq/shards/peers/shared_groups.py",
        "        self._commands.put(c.HomeAway(lambda key: self._placement.home(key) == home))\n",
        "        self._router.sharing.home_lost(lambda key: self._placement.home(key) == home)\n",
        "tests/shards/peers/test_shared_groups.py",
    ),
    Planted(
        "what is to be assigned of records that the home of a group does not know yet is dropped", "router/backlog.py",
        "    if share.is_here and share.is_behind(feed.index, lsn)",
        "    if not share.is_here and share.is_behind(feed.index, lsn)",
        FEED,
    ),
    Planted(
        "a group that waits for records that its home does not know yet waits for ever", "router/delivery.py",
        "            reader.waiting &= ~(1 << feed.index)\n            self._resume_any(reader)\n",
        "            reader.waiting &= ~(1 << feed.index)\n            self.resume(reader)\n",
        FEED,
    ),
    Planted(
        "what an owner does not have is asked for again at once", "router/delivery.py",
        "            if not chunks and lsn >= feed.mark(False):",
        "            if not chunks and lsn < 0:",
        FEED,
    ),
    Planted(
        "what a group may assign of records that were never written waits for others with their lsns",
        "router/backlog.py",
        "share.is_behind(feed.index, lsn) and lsn >= feed.mark(False)",
        "lsn >= feed.mark(False)",
        FEED,
    ),
    Planted(
        "a group ends though a shard that is missing may have members of it", "router/shared_group_rules.py",
        "        if share.members or share.is_held:",
        "        if share.members:",
        FEED,
    ),
    Planted(
        "what was delivered of a missing shard's log counts as what the last run knew of it",
        "rumq/shards/recovery/fit_to_log.py",
        "OPEN_END if isinstance(p, RemotePartition) and p.found is not None else ends",
        "ends",
        LATE,
    ),
    Planted(
        "what comes once a missing shard is there counts as delivered before", "rumq/shards/recovery/late_shards.py",
        "                if session.link is None and not session.is_moving:\n",
        "                if session.link is not None:\n",
        LATE,
    ),
    Planted(
        "what a shard's log has already is handed over again", "rumq/shards/bus/remote_partition.py",
        "max(message.sequence, outgoing.committed_lsn)",
        "outgoing.committed_lsn",
        SCHEDULES,
    ),
    Planted(
        "messages of QoS 0 are handed over again", "rumq/shards/bus/publish_sender.py",
        "        self._leave_out_shown()\n",
        "",
        f"{FOUND}::test_a_message_of_qos_0_that_was_shown_and_not_written_does_not_come_again",
    ),
    Planted(
        "a leader that is handed over does not tell other shards that it has shown nothing more",
        "rumq/shards/replication/hand_over.py",
        "                self._clients.tell_noted()\n",
        "                pass\n",
        f"{MOVES}::test_what_a_leader_does_not_read_any_more_goes_to_its_successor_at_qos_0",
    ),
    Planted(
        "a leader that nobody succeeded does not tell other shards that it goes on", "rumq/shards/peers/peers.py",
        "            peer.set_last(False)\n",
        "",
        f"{MOVES}::test_what_a_leader_has_shown_does_not_come_again_when_it_dies_after_it_went_on",
    ),
    Planted(
        "what waits behind a group in flight is not written before a shard is handed over",
        "rumq/shards/write_path/write_lane.py",
        "        return self.partition.written_lsn < self.frozen_lsn\n",
        "        return False\n",
        f"{MOVES}::test_what_its_disk_has_not_written_is_written_before_the_successor_is_asked",
    ),
    Planted(
        "what a leader has said last is not read once its successor is seen", "rumq/shards/peers/peers.py",
        "        self._read_out(peer)\n        if peer.link is not None:\n            peer.link.end()\n",
        "        if peer.link is not None:\n            peer.link.end()\n",
        "tests/shards/peers/test_peers.py::test_what_an_owner_has_said_counts_when_its_successor_is_seen_first",
    ),
    Planted(
        "what is not committed is not kept for the owner's successor", "rumq/shards/bus/publish_sender.py",
        "            self._hand_over(batch)\n\n    def _leave",
        "            pass\n\n    def _leave",
        SCHEDULES,
    ),
    # Clients and sessions
    Planted(
        "a client stays where it was accepted, and nobody tells its home", "rumq/net/client_placement.py",
        "        return self._count == 1 or self.home(client_id) == self.index\n",
        "        return True\n",
        SCHEDULES,
    ),
    Planted(
        "the next run finds packet ids again that are long free", "rumq/shards/recovery/startup.py",
        "        self._late.searched_to(shard, found.ends)\n",
        "",
        "tests/shards/recovery/test_startup.py",
    ),
    Planted(
        "the ids of inbound messages are not asked for after a crash", "rumq/shards/recovery/startup.py",
        "        add_tags(self._state, found.tags)\n",
        "",
        SCHEDULES,
    ),
    Planted(
        "a message is lost when its client leaves in the same turn", "rumq/shards/delivery/fan_out.py",
        "        self._commands.put(c.Blocked(reader, effect.partition, lsn))\n",
        "",
        f"{FOUND}::test_a_message_committed_in_the_turn_in_which_its_client_leaves_stays_in_the_session",
    ),
    Planted(
        "the id of a message in the read that ends its connection is not in the next checkpoint",
        "rumq/session/protocol/connected.py",
        "        if wire.acks:  # of messages in the read that ends the connection, which nobody answers\n",
        "        if False:\n",
        f"{FOUND}::test_a_message_whose_client_leaves_in_the_same_read_is_stored_once",
    ),
    Planted(
        "a DISCONNECT that has arrived is not read", "rumq/net/pump.py",
        "        connection.write_failed = why\n",
        "        self.lost(connection, why)\n        return\n",
        "tests/net/test_pump.py::test_what_was_said_before_nothing_could_be_sent_is_taken",
    ),
    Planted(
        "a will takes a packet id of its client", "rumq/mqtt/kernels/ingest.py",
        "if not wire.own:  # a will has none of its client's packet ids",
        "if True:",
        f"{FOUND}::test_a_will_takes_no_packet_id_of_its_client",
    ),
    # Subscriptions
    Planted(
        "retained messages of other shards do not come", "rumq/shards/peers/query_client.py",
        "        if answer.retained:\n",
        "        if False:\n",
        SCHEDULES,
    ),
    Planted(
        "a retained message that came while its shard began is forgotten", "rumq/shards/recovery/restore.py",
        "                if chunk.flags & FLAG_RETAIN and chunk.next_lsn <= feed.visible_lsn:\n",
        "                if False:\n",
        f"{FOUND}::test_a_retained_message_that_comes_while_its_shard_begins_is_the_last",
    ),
    Planted(
        "SUBACK waits for no other shard", "rumq/shards/peers/interest.py",
        "        return self.confirm_all(asked, then)\n",
        "        self.confirm_all(asked, lambda: None)\n        return True\n",
        "tests/shards/peers/test_interest.py",
    ),
    Planted(
        "what is asked of a shard before it has begun is forgotten", "rumq/shards/bus/record_forwarder.py",
        "            self._early.append(message)  # asked again before `Begin`, of a run before\n",
        "",
        "tests/shards/bus/test_record_forwarder.py",
    ),
    Planted(
        "whoever subscribes waits again and again for a shard that is away", "rumq/shards/peers/interest.py",
        "        waited_for = set(self._others).difference(self._not_waited_for())\n",
        "        waited_for = set(self._others)\n",
        "tests/shards/peers/test_interest.py",
    ),
    Planted(
        "a filter that another client asks for is given up", "rumq/shards/peers/interest.py",
        "        gone = [f for f in gone if f not in self._asking]\n",
        "",
        f"{FOUND}::test_what_one_client_does_not_want_any_more_another_is_still_granted",
    ),
    Planted(
        "QoS 0 passes a message that waits for a window", "rumq/session/flow_control/delivery_window.py",
        "        reader.refused |= 1 << partition\n",
        "",
        SCHEDULES,
    ),
    # Shared subscriptions
    Planted(
        "what a shard was handed of a share dies with it", "router/shared_group_rules.py",
        "                share.returned.extend(member.outstanding)\n                share.add(",
        "                share.add(",
        f"{FOUND}::test_what_a_shard_was_handed_of_a_share_is_handed_out_again_when_it_has_died",
    ),
    Planted(
        "the beginning of a share is not written down", "rumq/shards/peers/shared_groups.py",
        "        self._barrier.journal.recorder.shared(effect.key, effect.cursors)\n",
        "        pass\n",
        "tests/shards/peers/test_shared_groups.py",
    ),
    Planted(
        "what came to a shard too early is handed out twice", "router/shared_group_rules.py",
        "self.ranges_returned(shard, key, without(ranges, without(ranges, member.outstanding)))",
        "self.ranges_returned(shard, key, ranges)",
        ENDS.replace("share-elsewhere-ends", "share-early"),
    ),
    Planted(
        "a share is over before all have been heard", "rumq/shards/peers/shared_groups.py",
        "each.was_begun and not each.early for each",
        "each.was_begun for each",
        f"{FOUND}::test_a_share_survives_its_home_among_three_shards",
    ),
    Planted(
        "a group that was restored ends before all have said what members they have",
        "rumq/shards/recovery/restore.py",
        "        if are_others:\n",
        "        if not are_others:\n",
        f"{FOUND}::test_a_share_whose_home_has_just_begun_does_not_end_with_the_members_that_it_has_heard_of",
    ),
    Planted(
        "a group that was restored is not in a snapshot before its members are known",
        "rumq/shards/recovery/checkpoint.py",
        "        if not durable and not share.is_held:\n",
        "        if not durable:\n",
        CHECKPOINT,
    ),
    Planted(
        "a shard begins over a link over which the other one has said nothing", "rumq/shards/peers/peer.py",
        "        if self.link is not None and self.is_met:\n            groups",
        "        if self.link is not None:\n            groups",
        "tests/shards/peers/test_peer.py",
    ),
    Planted(
        "a group ends that a client is about to join", "rumq/shards/peers/peer.py",
        "            self.begin()\n"
        "        # Behind `Begin`, which says what is wanted here, and which groups are joined, or about to be.\n"
        "        for question in self._questions.unanswered():\n            link.say(question)\n",
        "            questions = self._questions.unanswered()\n            list(map(link.say, questions))\n"
        "            self.begin()\n",
        "tests/shards/peers/test_peer.py",
    ),
    Planted(
        "a group ends whose last member leaves while another client joins", "rumq/shards/peers/shared_groups.py",
        "        if not effect.weight and (key in self._joining or key in self._router.sharing.shares):\n",
        "        if False:\n",
        f"{FOUND}::test_a_group_whose_last_member_leaves_while_another_client_joins_misses_nothing",
    ),
    Planted(
        "a group ends over a new link while a client waits for another group", "rumq/shards/peers/shared_groups.py",
        "for key, each in (joining | members).items()",
        "for key, each in members.items()",
        "tests/shards/peers/test_shared_groups.py",
    ),
    Planted(
        "a group ends while the groups behind it in a packet are asked for", "rumq/shards/peers/group_joins.py",
        "            self._groups.will_join(key, groups[key])\n",
        "            self._groups.will_join(key, groups[key])\n"
        "            self._timers.after_step(partial(self._groups.has_joined, key))\n",
        "tests/shards/peers/test_interest.py",
    ),
    Planted(
        "a filter that others leave is given up while somebody waits for SUBACK", "rumq/shards/peers/interest.py",
        "        self._asking.update(plain)\n",
        "",
        f"{FOUND}::test_a_filter_whose_last_reader_leaves_while_another_client_subscribes_misses_nothing",
    ),
    Planted(
        "a shard is thought to have no room for what a former member did not take", "router/shared_group_rules.py",
        "        present = self.shares.get(ended.key)\n",
        "        present = None\n",
        ENDS,
    ),
    Planted(
        "what was assigned just before a link was made anew goes over it twice", "router/shared_group_rules.py",
        "                share.add(shard, Reader(0, member.reader.group, self._no_cursors, share.key))\n",
        "                member.reader.sink, member.outstanding = sink, NO_RANGES\n",
        FEED,
    ),
    Planted(
        "a shard that gave back what came too early gets nothing more", "router/shared_group_rules.py",
        "            member.parked = False  # what came to it before its client had joined, it gave back\n",
        "",
        f"{FOUND}::test_a_share_whose_messages_come_before_its_first_member_has_joined_goes_on",
    ),
    Planted(
        "what comes back from a shard comes after it has left", "router/shared_group_rules.py",
        "        self._continue_or_end(share)\n        self._report_weight(share)  # behind what comes back\n",
        "        self._report_weight(share)\n        self._continue_or_end(share)\n",
        f"{FOUND}::test_what_the_last_member_of_a_shard_has_not_acknowledged_goes_to_another",
    ),
    Planted(
        "what has gone back to a home goes back again with what a former member refuses",
        "router/shared_group_rules.py",
        "            share.returned.clear()  # what a former member returns later goes back alone: `blocked`\n",
        "",
        ENDS,
    ),
    Planted(
        "what a shard was assigned as its last member went comes back after it has left",
        "router/shared_group_rules.py",
        "        share.returned.extend(member.given)\n        member.given = NO_RANGES\n        if member.before:\n",
        "        if member.given or member.before:\n",
        ENDS,
    ),
    Planted(
        "a mark counts before the owner has said what it has", "rumq/shards/bus/publish_sender.py",
        "        if self._say is not None and committed_there > self.committed_there:\n",
        "        if committed_there > self.committed_there:\n",
        f"{FOUND}::test_a_message_is_taken_once_though_its_owner_dies_again_before_it_has_said_what_it_has",
    ),
    Planted(
        "what a member could not take of a share goes to nobody", "router/readers/shared_group.py",
        "                self.returned.append((where, lsn, stop))\n",
        "",
        SCHEDULES,
    ),
    # Shards that are missing at a start
    Planted(
        "a message that a missing shard may have is stored", "rumq/shards/recovery/undecided.py",
        "        is_there = all(wire.partition not in partitions for partitions in self.missing.values())\n",
        "        is_there = True\n",
        f"{LATE}::test_a_message_that_the_missing_shard_has_is_not_stored_twice",
    ),
    Planted(
        "an id that was released is free, whatever a missing shard has", "rumq/shards/recovery/undecided.py",
        "        if is_there and not (is_again and wire.packet_id in replayed.qos2_tagged):\n",
        "        if is_there:\n",
        f"{LATE}::test_a_message_that_is_stored_is_known_though_its_id_was_used_before",
    ),
    Planted(
        "the end of an unknown exchange is answered and forgotten", "rumq/session/protocol/control_packets.py",
        "        if not known and client.broker.publishing.undecided.concerns(responder.session):\n",
        "        if False:\n",
        f"{LATE}::test_an_exchange_with_the_missing_shard_ends_when_it_is_back",
    ),
    Planted(
        "a later run asks a missing shard from the beginning", "rumq/shards/bus/remote_partition.py",
        "            partition.outgoing.committed_there = tags_from[partition.index]\n",
        "            partition.outgoing.committed_there = 0\n",
        f"{LATE}::test_an_exchange_that_had_ended_does_not_open_again",
    ),
    Planted(
        "a run that ends soon leaves a search from the beginning", "rumq/shards/recovery/startup.py",
        "        late.searched(self._state)\n",
        "",
        "tests/shards/recovery/test_startup.py",
    ),
    Planted(
        "releases that nothing accounts for yet are not written down", "rumq/shards/recovery/undecided.py",
        "            if (packed := packed_releases(session.qos2_released))\n",
        "            if (packed := packed_releases({}))\n",
        "tests/shards/recovery/test_undecided.py",
    ),
    Planted(
        "what may have been sent of a missing partition ends nowhere", "rumq/shards/recovery/late_shards.py",
        "            below[index] = next_lsn\n",
        "            pass\n",
        "tests/shards/recovery/test_late_shards.py",
    ),
    Planted(
        "a run that has written nothing leaves its writer epoch to the next one", "rumq/shards/recovery/startup.py",
        "            self._restorer.write_epoch()\n",
        "            pass\n",
        f"{LATE}::test_so_is_what_took_the_place_of_what_a_run_had_shown_that_wrote_nothing_at_all",
    ),
    Planted(
        "a disk that was set back gives out the writer epochs again that others have met",
        "rumq/shards/bus/writer_epoch.py",
        "    return min(max(now_us // 1_000_000 - SECONDS_BEGIN, 0), ALONE_MAX)\n",
        "    return 0\n",
        f"{LATE}::test_a_position_is_of_a_run_that_is_no_more_though_those_that_took_its_place_are_as_many",
    ),
    Planted(
        "a leader's writer epoch is that of its disk", "rumq/shards/bus/writer_epoch.py",
        "        return TERMS_BEGIN + term_epoch\n",
        "        return 0\n",
        f"{LATE}::test_a_position_is_of_a_run_that_is_no_more_though_those_that_took_its_place_are_as_many",
    ),
    Planted(
        "a leader opens its log as a broker alone does", "rumq/process/shard/shard_store.py",
        "place.cluster.office.lead.epoch if place.cluster is not None else None",
        "None",
        "tests/shards/bus/test_writer_epoch.py::test_a_shard_opens_its_log_under_it",
    ),
    Planted(
        "a group whose home is away for long keeps other filters waiting", "rumq/shards/peers/interest.py",
        "        self._joins.give_up()\n",
        "",
        "tests/shards/peers/test_group_joins.py::test_a_group_whose_home_stays_away_keeps_no_other_filter_waiting",
    ),
    Planted(
        "a group that its home has not created is granted", "rumq/session/protocol/subscribe.py",
        "    if client.broker.delivery.is_home_away(written):\n",
        "    if False:\n",
        "tests/session/protocol/test_subscribe.py",
    ),
    Planted(
        "a home that nobody has waited for keeps a member that there is not", "rumq/shards/peers/group_joins.py",
        "        else:  # nobody has waited for it, and the home has a member in this shard now\n"
        "            self._groups.has_joined(key)\n",
        "",
        "tests/shards/peers/test_group_joins.py::test_a_group_whose_home_stays_away_keeps_no_other_filter_waiting",
    ),
    Planted(
        "a group hands out what a missing shard's members have", "rumq/shards/recovery/restore.py",
        "            self._router.sharing.hold()\n",
        "            pass\n",
        f"{LATE}::test_a_shared_subscription_is_handed_out_once_all_have_said_what_they_had",
    ),
]  # fmt: skip
