/* Replication of one partition, the rules of docs/explanation/replication.md. README.md beside it says how to run it.

replica.pml has what is on disks and in terms; faults.pml how disks and the record of the control plane go back. Here is
what replicas do. Drop a rule with -DNO_R1 ... ; -DCHANGE adds a fourth replica and one change of members, {0,1,2} to {2,3};
-DRESTORES=1 lets the record go back; -DOLD=1 lets a disk go back that notices it, -DUNNOTICED=1 one that does not. */

#include "replica.pml"

/* R2: a higher epoch, or the very term that was promised. Equal epochs of other ids are refused. */
#ifdef NO_R2_ID
#define NEWER(t, j) (E(promised[j]) < E(t) || (E(promised[j]) == E(t) && promised[j] != t && role[j] == 0))
#else
#define NEWER(t, j) (E(promised[j]) < E(t))
#endif
#define AGAIN(t, j) (promised[j] == t && leader[j] != t && role[j] == 0)

/* R2: a claimant chooses once majorities have promised, R11: of those whose copies are sound. */
#ifdef NO_R2
#define FENCED(t) true
#else
#define FENCED(t) QUORUM(term[t].mode, term[t].promised | ME(t))
#endif

/* R2b: a claimant goes by the newest members that an answer names. */
#ifdef NO_R2B
#define LEARN(t, j)
#else
#define LEARN(t, j) if :: term[t].step <= FENCING && members[j] > term[t].mode -> term[t].mode = members[j] :: else fi;
#endif

/* R3 */
#ifdef NO_R3
#define BETTER(t, a, b) (term[t].saidlen[a] > term[t].saidlen[b])
#else
#define BETTER(t, a, b) (E(term[t].saidopened[a]) > E(term[t].saidopened[b]) || \
    (E(term[t].saidopened[a]) == E(term[t].saidopened[b]) && term[t].saidlen[a] > term[t].saidlen[b]))
#endif

/* Of those that answered: the highest opened epoch, then the longest log. The claimant itself if it is as good. */
inline choose(t) {
    best = term[t].node; n = 0;
    do
    :: n < N ->
        if
        :: (term[t].promised & BIT(n)) && BETTER(t, n, best) -> best = n
        :: else
        fi;
        n++
    :: else -> break
    od;
    term[t].source = best; best = 0; n = 0
}

/* R3: what cannot be after crashes alone: `votes` is 1 if two ids have the highest opened epoch. */
inline two_ids(t) {
    votes = 0; n = 0;
    do
    :: n < N ->
        if
        :: (term[t].promised & BIT(n)) && E(term[t].saidopened[n]) == E(term[t].saidopened[term[t].source]) &&
                term[t].saidopened[n] != term[t].saidopened[term[t].source] -> votes = 1
        :: else
        fi;
        n++
    :: else -> break
    od;
    n = 0
}
#ifdef NO_R3_IDS
#define DOUBTS(t) MARK_ABOVE(t)
#else
#define DOUBTS(t) (votes || MARK_ABOVE(t))
#endif
#if defined(DISKS) && !defined(NO_R3_MARK)
#define MARK_ABOVE(t) (term[t].evidence > term[t].saidlen[term[t].source])
#else
#define MARK_ABOVE(t) false
#endif

/* R5: a follower takes frames of the leader that it follows, and of no term but the promised one. */
#ifdef NO_R5
#define TAKES(t, j) (role[j] == 0)
#define FORGET(t, j) term[t].prefix = term[t].prefix & (255 - BIT(j));
#else
#define FORGET(t, j) forget_links(j);
#define TAKES(t, j) (role[j] == 0 && leader[j] == t && promised[j] == t)
#endif

#ifdef NO_R4_COUNT
#define COUNTS(t, j) true
#else
#define COUNTS(t, j) (term[t].opened & BIT(j))
#endif

/* R6, R7: the mask of those whose copies count up to lsn x. */
inline counted(t, x) {
    votes = 0; n = 0;
    if :: synced[term[t].node] >= x -> votes = ME(t) :: else fi;
    do
    :: n < N ->
        if
        :: n != term[t].node && term[t].acked[n] >= x && COUNTS(t, n) -> votes = votes | BIT(n)
        :: else
        fi;
        n++
    :: else -> break
    od;
    n = 0
}
#ifdef NO_R4_NOTE
#define COMPLETE(t, j) true
#else
#define COMPLETE(t, j) ((term[t].prefix & BIT(j)) && size[j] >= term[t].ends)
#endif
#ifdef NO_SETTLE
#define ISOPEN(t) true
#else
#define ISOPEN(t) QUORUM(term[t].mode, term[t].opened | ME(t))
#endif

/* R2c: nobody notes a changed term as opened before majorities have promised it. */
#ifdef NO_R2C
#define AFTER_CHANGE LEADS
#else
#define AFTER_CHANGE CHANGING
#endif
#ifdef NO_R2C_COPIES
#define MAYOPEN(t) (term[t].step >= CHANGING)
#else
#define MAYOPEN(t) (term[t].step == LEADS)
#endif

/* What must hold: a leader that takes office knows of nothing committed that it does not have. */
inline take_office(t) {
    assert(term[t].evidence <= size[term[t].node]);
    opened[term[t].node] = t;
    members[term[t].node] = term[t].mode;
    synced[term[t].node] = size[term[t].node];
    term[t].ends = size[term[t].node];
    term[t].step = LEADS;
    clear_answers(t)
}

#ifdef ONLY_LOSS /* a doubt is not a fault, so that a trace goes on to what is lost */
#define DOUBTS_PASS true
#else
#define DOUBTS_PASS false
#endif

/* A doubt ends in no leader, never in a cut. What must hold: nothing but a disk that went back unnoticed leads to one; or a
record and a disk that both went back, for a claimant that could not have won. */
inline give_up(t) {
    assert(DOUBTS_PASS || !IS_HONEST || (BOTH_WENT_BACK && term[t].step == FENCING && votes == 0));
    votes = 0;
    role[term[t].node] = 0;
    end_term(t)
}

proctype Terms(byte t) {
    do
    /* R2: fence. A leader asks those that come later, too, but does not choose again. */
#define PROMISE(j) \
    :: d_step { (term[t].step != GONE && term[t].node != j && VOTES(term[t].mode, j) && (NEWER(t, j) || AGAIN(t, j)) && FLOOR(t, j)) -> \
        printf("%d promises term %d (epoch %d): opened %d, %d entries\n", j, t, E(t), opened[j], size[j]); \
        if :: role[j] -> end_term(role[j]); role[j] = 0 :: else fi; \
        promised[j] = t; leader[j] = t; synced[j] = size[j]; \
        FORGET(t, j) \
        LEARN(t, j) \
        if \
        :: term[t].step <= FENCING -> answer(t, j) \
        :: term[t].step == CHANGING && opened[j] != DOUBTED -> term[t].promised = term[t].promised | BIT(j); AGAIN_LINKED(t, j) \
        :: else -> AGAIN_LINKED(t, j) \
        fi }
    EACH(PROMISE)

    /* R3: adopt, an entry at a time. A source that has promised a newer epoch is not read any more; R11: nor is one that has
    come to doubt its copy, or has less than it had said. */
    :: d_step { (term[t].step == FENCING && FENCED(t)) ->
        choose(t);
        two_ids(t);
        if
        :: DOUBTS(t) -> printf("term %d: %d doubts, and does not lead\n", t, term[t].node); give_up(t)
        :: else ->
            assert(votes == 0); /* nobody chooses between two histories with one epoch by their lengths */
            term[t].step = ADOPTING;
            printf("term %d: %d adopts the log of %d\n", t, term[t].node, term[t].source);
            if :: term[t].source == term[t].node -> take_office(t); printf("term %d: leads\n", t) :: else fi
        fi }
    :: d_step { (term[t].step == ADOPTING && promised[term[t].source] == t && SERVES(t, term[t].source)) ->
        common(term[t].node, term[t].source);
        if
        :: size[term[t].node] > k && BELOW_MARK(term[t].node, k) ->
            printf("term %d: %d would be cut below its mark\n", t, term[t].node); give_up(t)
        :: size[term[t].node] > k && !BELOW_MARK(term[t].node, k) ->
            cut_to(term[t].node, k); printf("term %d: %d cuts its log to %d\n", t, term[t].node, k)
        :: size[term[t].node] == k && k < size[term[t].source] ->
            log[term[t].node].at[k] = log[term[t].source].at[k]; size[term[t].node] = k + 1;
            printf("term %d: %d fetches entry %d\n", t, term[t].node, k);
            check_mix(term[t].node)
        :: else -> take_office(t); printf("term %d: %d leads with %d entries\n", t, term[t].node, term[t].ends)
        fi;
        k = 0 }

    /* The leader writes, and syncs later. */
    :: d_step { (term[t].step >= CHANGING && size[term[t].node] < LSNS) ->
        printf("term %d: %d writes lsn %d\n", t, term[t].node, size[term[t].node]);
        log[term[t].node].at[size[term[t].node]] = t; size[term[t].node]++;
        check_mix(term[t].node) }
    :: d_step { (term[t].step >= CHANGING && synced[term[t].node] < size[term[t].node]) ->
        printf("term %d: %d syncs\n", t, term[t].node);
        synced[term[t].node] = size[term[t].node] }

    /* R5, R6: a copy is compared and cut, then continued and synced, then acknowledged. One that would be cut below its
    mark says so: the leader doubts its own copy then, and resigns. */
#define CUT(j) \
    :: d_step { (term[t].step >= CHANGING && term[t].node != j && leader[j] == t && TAKES(t, j) && FEEDS(t, j) && \
            !(term[t].prefix & BIT(j))) -> \
        common(j, term[t].node); \
        if \
        :: size[j] > k && BELOW_MARK(j, k) -> \
            printf("term %d: %d is not cut below its mark, %d doubts its own copy\n", t, j, term[t].node); \
            opened[term[t].node] = DOUBTED; give_up(t) \
        :: else -> \
            cut_to(j, k); synced[j] = k; \
            printf("term %d: %d is cut to %d\n", t, j, k); \
            term[t].prefix = term[t].prefix | BIT(j); COMPARED(t, j, k) \
        fi; \
        k = 0 }
    EACH(CUT)
#define APPEND(j) \
    :: d_step { (term[t].step >= CHANGING && term[t].node != j && TAKES(t, j) && (term[t].prefix & BIT(j)) && \
            size[j] < size[term[t].node]) -> \
        common(j, term[t].node); \
        if \
        :: k == size[j] -> \
            log[j].at[k] = log[term[t].node].at[k]; size[j] = k + 1; SYNC(j) \
            if :: term[t].acked[j] < k + 1 -> term[t].acked[j] = k + 1 :: else fi; \
            printf("term %d: %d takes lsn %d and acknowledges it\n", t, j, k); \
            check_mix(j) \
        :: else -> term[t].prefix = term[t].prefix & (255 - BIT(j)) \
        fi; \
        k = 0 }
#ifdef NO_R6
#define SYNC(j)
#else
#define SYNC(j) synced[j] = size[j];
#endif
    EACH(APPEND)

    /* R4: a copy that has everything of before the term is noted as opened, with the members; R11: and everything that it has
    acknowledged in the term, if it has lost some of that. */
#define OPEN(j) \
    :: d_step { (MAYOPEN(t) && term[t].node != j && leader[j] == t && TAKES(t, j) && COMPLETE(t, j) && HAS_ACKED(t, j) && \
            !(term[t].opened & BIT(j))) -> \
        printf("term %d: %d opens epoch %d with %d entries\n", t, j, E(t), size[j]); \
        opened[j] = t; forgot[j] = 0; members[j] = term[t].mode; synced[j] = size[j]; term[t].opened = term[t].opened | BIT(j) }
    EACH(OPEN)

    /* R7: commit, and what must hold. A leader commits nothing that it has not synced itself. */
#ifdef NO_R7_OWN
#define OWN(t) size[term[t].node]
#else
#define OWN(t) synced[term[t].node]
#endif
#define COMMIT(x) \
    :: d_step { (term[t].step == LEADS && OWN(t) >= x && UNCOMMITTED(t, x)) -> \
        counted(t, x); \
        if \
        :: QUORUM(term[t].mode, votes) -> \
            k = 0; \
            do \
            :: k < x -> \
                printf("term %d: %d commits lsn %d, written in term %d\n", t, term[t].node, k, log[term[t].node].at[k]); \
                assert(!IS_HONEST || committed[k] == 0 || committed[k] == log[term[t].node].at[k]); \
                if :: IS_HONEST -> committed[k] = log[term[t].node].at[k] :: else fi; \
                k++ \
            :: else -> break \
            od; \
            KNOW(t, x) \
        :: else \
        fi; \
        votes = 0; k = 0 }
    COMMIT(1)
#if LSNS > 1
    COMMIT(2)
#endif

#ifdef CHANGE
    /* R2c: the leader replaces members: its claim of the next epoch, fenced by the rules of both sets. */
    :: d_step { (term[t].step == LEADS && record == t && terms < TERMS && term[t].mode == 0) ->
        terms++; record = terms; mode = 1; recorded[terms] = 1; epoch[terms] = E(t) + 1;
        printf("term %d: %d changes the members in term %d, epoch %d\n", t, term[t].node, terms, E(terms));
        term[terms].node = term[t].node; term[terms].mode = 1;
        term[terms].step = AFTER_CHANGE; term[terms].ends = synced[term[t].node];
        role[term[t].node] = terms; promised[term[t].node] = terms;
        if
        :: term[terms].step == LEADS -> opened[term[t].node] = terms; members[term[t].node] = 1
        :: else
        fi;
        end_term(t) }
    :: d_step { (term[t].step == CHANGING && QUORUM(1, term[t].promised | ME(t))) ->
        printf("term %d: %d is fenced with the old and the new members\n", t, term[t].node);
        opened[term[t].node] = t; members[term[t].node] = 1; term[t].step = LEADS; clear_answers(t) }
    :: d_step { (term[t].step == LEADS && record == t && mode < 2 && term[t].mode == 1 && ISOPEN(t)) ->
        printf("the old members are out of the record\n");
        mode = 2; recorded[t] = (recorded[t] == 1 -> 3 : 2) }
    :: d_step { (term[t].step == LEADS && record == t && mode == 2 && term[t].mode == 1) ->
        printf("term %d: only the new members count\n", t);
        term[t].mode = 2 }
#endif
    LEADER_FAULTS
    od
}

/* R1: the epoch is above the record's and above what the claimant has promised itself, or knows that others have. */
#define OVER(a, b) ((a) > (b) -> (a) : (b))
#ifdef NO_R1
#define EPOCH(i) (E(record) + 1)
#else
#define EPOCH(i) (OVER(E(record), E(promised[i])) + 1)
#endif
#ifdef NO_R2B
#define KNOWN(i) mode
#else
#define KNOWN(i) OVER(mode, members[i])
#endif

inline claim(i) {
    terms++; record = terms; mode = KNOWN(i); recorded[terms] = mode;
    term[terms].node = i; term[terms].mode = mode; term[terms].step = FENCING;
    printf("%d claims: term %d, epoch %d\n", i, terms, E(terms));
    role[i] = terms; leader[i] = 0; promised[i] = terms; synced[i] = size[i];
    forget_links(i);
    answer(terms, i)
}

proctype Nodes(byte i) {
    do
    /* A claimant replaces the record that it finds, R1. Doubted copies do not claim, R11. */
    :: d_step { (terms < TERMS && role[i] == 0 && VOTES(KNOWN(i), i) && (terms > 0 || i == FIRST) && opened[i] != DOUBTED) ->
        epoch[terms + 1] = EPOCH(i); claim(i) }
    /* A power cut loses what was not synced. A killed process loses nothing: a leader that does nothing more is one. */
    :: d_step { (crashes < CRASHES && (size[i] > synced[i] || LOSES(i))) ->
        crashes++;
        printf("%d loses its power, and %d entries\n", i, size[i] - synced[i]);
        cut_to(i, synced[i]);
        LOSE(i)
        end_process(i) }
    /* A follower that is linked anew is compared anew. */
    :: d_step { (crashes < CRASHES && leader[i]) ->
        crashes++;
        printf("%d loses its link\n", i);
        leader[i] = 0; forget_links(i) }
    NODE_FAULTS
    od
}

RECORD_FAULTS

init {
    atomic {
        RUN_RECORD;
        k = 1;
        do :: k <= TERMS -> run Terms(k); k++ :: else -> break od;
        k = 0;
        do :: k < N -> run Nodes(k); k++ :: else -> break od;
        k = 0
    }
}
