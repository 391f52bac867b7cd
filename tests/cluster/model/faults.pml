/* What goes back in time: the record of the control plane (-DRESTORES), disks that are noticed to be old (-DOLD), and disks that
are not (-DUNNOTICED). With disks come the committed marks, and what R3, R5 and R11 make of them. */

#ifndef RESTORES
#define RESTORES 0
#endif
#ifndef OLD
#define OLD 0
#endif
#ifndef UNNOTICED
#define UNNOTICED 0
#endif
#ifndef IMAGES
#define IMAGES 0
#endif

#if RESTORES > 0
byte restores;

/* The record is any that it was before: of each term, the members that it was claimed with, and those that it went on to. */
#define RESTORED_TO(t, m) \
    :: d_step { (restores < RESTORES && terms >= t && record != 0 && (record != t || mode != (m)) && HAD(t, m)) -> \
        restores++; record = t; mode = m; \
        printf("the record is restored: term %d (epoch %d), members %d\n", record, E(record), mode) }
#ifdef CHANGE
#define HAD(t, m) (recorded[t] == (m) || (recorded[t] == 3 && (m) > 0))
#define RESTORED(t) RESTORED_TO(t, 0) RESTORED_TO(t, 1) RESTORED_TO(t, 2)
#else
#define HAD(t, m) true
#define RESTORED(t) RESTORED_TO(t, 0)
#endif
#if TERMS > 3
#define RESTORED_TO_FOURTH RESTORED(4)
#else
#define RESTORED_TO_FOURTH
#endif
#define RECORD_FAULTS \
    proctype Record() { \
        do \
        RESTORED(0) RESTORED(1) RESTORED(2) RESTORED(3) RESTORED_TO_FOURTH \
        od \
    }
#define RUN_RECORD run Record()

/* A leader that finds a lower epoch in the record puts its own there again. */
#define PUT_BACK \
    :: d_step { (term[t].step == LEADS && E(record) < E(t)) -> \
        record = t; mode = term[t].mode; \
        printf("term %d: %d writes its record again\n", t, term[t].node) }
/* R1: it has been told of the highest promise of all. */
#define TOLD \
    :: d_step { (terms < TERMS && role[i] == 0 && VOTES(KNOWN(i), i) && (terms > 0) && opened[i] != DOUBTED && HIGHEST > EPOCH(i) - 1) -> \
        epoch[terms + 1] = HIGHEST + 1; claim(i) }
#if N == 4
#define HIGHEST OVER(OVER(E(promised[0]), E(promised[1])), OVER(E(promised[2]), E(promised[3])))
#else
#define HIGHEST OVER(OVER(E(promised[0]), E(promised[1])), E(promised[2]))
#endif
#else
#define RECORD_FAULTS
#define RUN_RECORD skip
#define PUT_BACK
#define TOLD
#endif

#if UNNOTICED > 0
byte unnoticed;
#define IS_HONEST (unnoticed == 0) /* nothing has gone back unnoticed */
#else
#define IS_HONEST true
#endif

#if RESTORES > 0 && OLD > 0
#define BOTH_WENT_BACK (restores && old)
#else
#define BOTH_WENT_BACK false
#endif

#if OLD + UNNOTICED > 0 || defined(MARKS)
#define DISKS
byte old;

/* A committed mark is noted late, or never. R5: only of a copy that has opened the term, as far as the copy goes. */
#define KNOW(t, x) if :: term[t].committed < x -> term[t].committed = x :: else fi
#define UNCOMMITTED(t, x) (term[t].committed < x)
#ifdef NO_R5_TOLD
#define TELLS(t, j) true
#else
#define TELLS(t, j) ((term[t].opened & BIT(j)) && (term[t].prefix & BIT(j)))
#endif
#define LEAST(a, b) ((a) < (b) -> (a) : (b))
#define NOTE(j) \
    :: d_step { (term[t].step >= CHANGING && term[t].node != j && leader[j] == t && TAKES(t, j) && TELLS(t, j) && \
            mark[j] < LEAST(term[t].committed, size[j])) -> \
        mark[j] = LEAST(term[t].committed, size[j]); kept[j] = mark[j]; \
        printf("%d notes that %d entries are committed\n", j, mark[j]) }
#define NOTE_OWN \
    :: d_step { (term[t].step >= CHANGING && mark[term[t].node] < term[t].committed) -> \
        mark[term[t].node] = term[t].committed; kept[term[t].node] = term[t].committed; \
        printf("%d notes that %d entries are committed\n", term[t].node, mark[term[t].node]) }
#define LEADER_FAULTS PUT_BACK NOTE_OWN EACH(NOTE)

/* R5: no cut below the mark that was noted with this log. */
#if defined(NO_R5_MARK)
#define BELOW_MARK(j, count) false
#elif defined(NO_R5_KEPT)
#define BELOW_MARK(j, count) ((count) < mark[j])
#else
#define BELOW_MARK(j, count) ((count) < kept[j])
#endif

/* R11: a follower that comes back with less than it had acknowledged in this term is told to doubt its copy, and its
promises; it is sound again when it has all of it. */
#define AGAIN_LINKED(t, j) \
    if \
    :: opened[j] != t -> term[t].opened = term[t].opened & (255 - BIT(j)) \
    :: else \
    fi; \
    if \
    :: opened[j] != DOUBTED && term[t].acked[j] > size[j] -> \
        assert(DOUBTS_PASS || !IS_HONEST); \
        opened[j] = DOUBTED; forgot[j] = 1; term[t].opened = term[t].opened & (255 - BIT(j)); \
        printf("term %d: %d has less than it had acknowledged, and is doubted\n", t, j) \
    :: else \
    fi
#ifdef NO_R11_COMPLETE
#define COMPARED(t, j, count) term[t].acked[j] = count
#define HAS_ACKED(t, j) true
#else
#define COMPARED(t, j, count) if :: term[t].acked[j] < count -> term[t].acked[j] = count :: else fi
#define HAS_ACKED(t, j) (size[j] >= term[t].acked[j])
#endif

/* R11: a copy that may have forgotten promises takes no term below the epoch of the record, and is compared only when all
other voters have answered its leader anew: whoever was given the promise is one of them. */
#ifdef NO_R11_FLOOR
#define FLOOR(t, j) true
#else
#define FLOOR(t, j) (!forgot[j] || E(t) >= E(record))
#endif
#define STILL(t, j, o) ((o) == (j) || !VOTES(term[t].mode, o) || promised[o] == t)
#if N == 4
#define ALL_STILL(t, j) (STILL(t, j, 0) && STILL(t, j, 1) && STILL(t, j, 2) && STILL(t, j, 3))
#else
#define ALL_STILL(t, j) (STILL(t, j, 0) && STILL(t, j, 1) && STILL(t, j, 2))
#endif
#ifdef NO_R11_ALL
#define FEEDS(t, j) true
#else
#define FEEDS(t, j) (!forgot[j] || ALL_STILL(t, j))
#endif

#ifdef NO_R11_SERVE
#define SERVES(t, j) true
#else
#define SERVES(t, j) (opened[j] != DOUBTED && size[j] >= term[t].saidlen[j])
#endif

/* An image of one disk, taken at some time; without one, the disk is as it was at the beginning. */
typedef Image { byte owner; Log log; byte size; byte promised; byte opened; byte members; byte mark };
Image image;

inline old_log(i) {
    n = 0;
    do
    :: n < LSNS -> log[i].at[n] = image.log.at[n]; n++
    :: else -> break
    od;
    n = 0;
    size[i] = image.size; synced[i] = image.size; kept[i] = image.mark
}
inline old_state(i) {
    promised[i] = image.promised; opened[i] = image.opened; members[i] = image.members
}
inline forget_image() {
    image.owner = 0; image.size = 0; image.promised = 0; image.opened = 0; image.members = 0; image.mark = 0; n = 0;
    do
    :: n < LSNS -> image.log.at[n] = 0; n++
    :: else -> break
    od;
    n = 0
}
#define HAS_IMAGE(i) (image.owner == 0 || image.owner == i + 1)
#if IMAGES > 0
#define TAKE_IMAGE \
    :: d_step { (image.owner == 0 && old < OLD + UNNOTICED && promised[i] && terms) -> \
        image.owner = i + 1; image.size = synced[i]; image.promised = promised[i]; image.opened = opened[i]; \
        image.members = members[i]; image.mark = mark[i]; n = 0; \
        do \
        :: n < synced[i] && n < LSNS -> image.log.at[n] = log[i].at[n]; n++ \
        :: else -> break \
        od; \
        n = 0; \
        printf("an image of the disk of %d is taken\n", i) }
#else
#define TAKE_IMAGE
#endif

#if OLD > 0
/* Noticed by the stamp, or because the two places disagree: doubted. */
#define NOTICED \
    :: d_step { (old < OLD && HAS_IMAGE(i) && promised[i]) -> \
        printf("%d has an old disk, and notices it\n", i); \
        old++; end_process(i); old_log(i); old_state(i); mark[i] = image.mark; opened[i] = DOUBTED; forgot[i] = 1; \
        forget_image() } \
    :: d_step { (old < OLD && HAS_IMAGE(i) && promised[i]) -> \
        printf("%d has an old log, and notices it\n", i); \
        old++; end_process(i); old_log(i); opened[i] = DOUBTED; \
        forget_image() } \
    :: d_step { (old < OLD && HAS_IMAGE(i) && promised[i]) -> \
        printf("%d has an old state, and notices it\n", i); \
        old++; end_process(i); old_state(i); opened[i] = DOUBTED; forgot[i] = 1; \
        forget_image() }
#else
#define NOTICED
#endif

#if UNNOTICED > 0
/* The whole disk is old and agrees with itself; or the last records are gone, above the mark. What was committed may be gone
with it, so nothing is asked of what is committed any more, but that copies keep what they know to be. */
#define NOT_NOTICED \
    :: d_step { (unnoticed < UNNOTICED && HAS_IMAGE(i) && promised[i]) -> \
        printf("%d has an old disk, and does not notice it\n", i); \
        unnoticed++; old++; end_process(i); old_log(i); old_state(i); mark[i] = image.mark; \
        forget_image(); forget_committed() } \
    :: d_step { (unnoticed < UNNOTICED && size[i] > mark[i]) -> \
        printf("%d lacks its last record, and does not notice it\n", i); \
        unnoticed++; old++; end_process(i); cut_to(i, size[i] - 1); \
        forget_image(); forget_committed() }
inline forget_committed() {
    n = 0;
    do
    :: n < LSNS -> committed[n] = 0; n++
    :: else -> break
    od;
    n = 0
}
#else
#define NOT_NOTICED
#endif

#define NODE_FAULTS TOLD TAKE_IMAGE NOTICED NOT_NOTICED

#else
#define KNOW(t, x) skip
#define UNCOMMITTED(t, x) (committed[x - 1] != log[term[t].node].at[x - 1])
#define BELOW_MARK(j, count) false
#define AGAIN_LINKED(t, j) skip
#define COMPARED(t, j, count) term[t].acked[j] = count
#define FLOOR(t, j) true
#define HAS_ACKED(t, j) true
#define FEEDS(t, j) true
#define SERVES(t, j) true
#define LEADER_FAULTS PUT_BACK
#define NODE_FAULTS TOLD
#endif
