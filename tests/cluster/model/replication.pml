/* Replication of one partition, rules R1 to R7 of docs/replication.md. README.md beside it says how to run it.

A term is a won claim. An entry of a log is the number of the term that wrote it, so that two entries at one lsn are the
same only if they are the same record. Messages are not modelled as such: what a replica has answered is a fact of a term
(masks and arrays below), which its leader may use at any later time, or never; so they are delayed and lost.

Drop a rule with -DNO_R1 ... ; -DCHANGE adds a fourth replica and one change of members, {0,1,2} to {2,3}. */

#ifndef TERMS
#define TERMS 3
#endif
#ifndef LSNS
#define LSNS 2
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifdef CHANGE
#define N 4
#define EACH(A) A(0) A(1) A(2) A(3)
#else
#define N 3
#define EACH(A) A(0) A(1) A(2)
#endif

#define FIRST 0 /* claims first: other runs are the same with other names */

#define GONE 0
#define FENCING 1
#define ADOPTING 2
#define LEADS 3

#define BIT(j) (1 << (j))
#define OLDQ(m) (((m) & 3) == 3 || ((m) & 5) == 5 || ((m) & 6) == 6)
#define NEWQ(m) (((m) & 12) == 12)
#ifdef NO_R7
#define JOINTQ(m) NEWQ(m)
#else
#define JOINTQ(m) (OLDQ(m) && NEWQ(m))
#endif
#define QUORUM(mode, m) (((mode) == 0 && OLDQ(m)) || ((mode) == 1 && JOINTQ(m)) || ((mode) == 2 && NEWQ(m)))
#define VOTES(mode, j) (((mode) == 0 && (j) < 3) || (mode) == 1 || ((mode) == 2 && (j) > 1))

typedef Log { byte at[LSNS] };
typedef Term {
    byte node; byte epoch; byte step; byte mode;
    byte ends;                  /* what the leader had when it took office */
    byte source;                /* whose log is adopted */
    byte promised;              /* mask: who has answered the fence, with: */
    byte saidopened[N]; byte saidlen[N];
    byte prefix;                /* mask: whose copy was compared and cut */
    byte opened;                /* mask: who has said that it has opened the term */
    byte acked[N]               /* up to where it has said that it has synced */
};

Log log[N];
byte size[N], synced[N], promised[N], opened[N];
byte leader[N];                 /* the term whose link it follows, 0: none */
byte role[N];                   /* the term that it leads or claims, 0: none */
Term term[TERMS + 1];
byte terms, mode, crashes;
byte committed[LSNS];

byte k, n, best, votes; /* 0 between two steps */

/* The first lsn at which two logs differ, in k. */
inline common(a, b) {
    k = 0;
    do
    :: k < size[a] && k < size[b] && k < LSNS && log[a].at[k] == log[b].at[k] -> k++
    :: else -> break
    od
}

inline cut_to(j, count) {
    n = count;
    do
    :: n < LSNS -> log[j].at[n] = 0; n++
    :: else -> break
    od;
    if :: size[j] > count -> size[j] = count :: else fi;
    if :: synced[j] > count -> synced[j] = count :: else fi;
    n = 0
}

inline forget_links(j) {
    n = 1;
    do
    :: n <= TERMS -> term[n].prefix = term[n].prefix & (255 - BIT(j)); n++
    :: else -> break
    od;
    n = 0
}

inline answer(t, j) {
    term[t].promised = term[t].promised | BIT(j);
    term[t].saidopened[j] = opened[j];
    term[t].saidlen[j] = size[j]
}

#ifdef NO_R3
#define BETTER(t, a, b) (term[t].saidlen[a] > term[t].saidlen[b])
#else
#define BETTER(t, a, b) (term[t].saidopened[a] > term[t].saidopened[b] || \
    (term[t].saidopened[a] == term[t].saidopened[b] && term[t].saidlen[a] > term[t].saidlen[b]))
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

#ifdef NO_R2
#define FENCED(t) true
#else
#define FENCED(t) QUORUM(term[t].mode, term[t].promised)
#endif

/* R5: a follower takes frames of the leader that it follows, and of no epoch but the promised one. */
#ifdef NO_R5
#define TAKES(t, j) (role[j] == 0)
#define FORGET(t, j) term[t].prefix = term[t].prefix & (255 - BIT(j));
#else
#define FORGET(t, j) forget_links(j);
#define TAKES(t, j) (role[j] == 0 && leader[j] == t && promised[j] == term[t].epoch)
#endif

#ifdef NO_R4_COUNT
#define COUNTS(t, j) true
#else
#define COUNTS(t, j) (term[t].opened & BIT(j))
#endif

/* R6, R7: the mask of those whose copies count up to lsn x. */
inline counted(t, x) {
    votes = 0; n = 0;
    if :: synced[term[t].node] >= x -> votes = BIT(term[t].node) :: else fi;
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
#define ISOPEN(t) QUORUM(term[t].mode, term[t].opened | BIT(term[t].node))
#endif

/* What is not needed any more is set to 0, so that fewer states differ. */
inline clear_answers(t) {
    term[t].promised = 0; term[t].source = 0; n = 0;
    do
    :: n < N -> term[t].saidopened[n] = 0; term[t].saidlen[n] = 0; n++
    :: else -> break
    od;
    n = 0
}

inline end_term(t) {
    term[t].step = GONE; term[t].ends = 0; term[t].prefix = 0; term[t].opened = 0; term[t].mode = 0; term[t].node = 0;
    clear_answers(t);
    do
    :: n < N -> term[t].acked[n] = 0; n++
    :: else -> break
    od;
    n = 0
}

inline take_office(t) {
    opened[term[t].node] = term[t].epoch;
    synced[term[t].node] = size[term[t].node];
    term[t].ends = size[term[t].node];
    term[t].step = LEADS;
    clear_answers(t)
}

proctype Terms(byte t) {
    do
    /* R2: fence. A leader asks those that come later, too, but does not choose again. */
#define PROMISE(j) \
    :: d_step { (term[t].step != GONE && term[t].node != j && VOTES(term[t].mode, j) && \
            (promised[j] < term[t].epoch || (promised[j] == term[t].epoch && leader[j] != t && role[j] == 0))) -> \
        printf("%d promises term %d (epoch %d): opened %d, %d entries\n", j, t, term[t].epoch, opened[j], size[j]); \
        if :: role[j] -> end_term(role[j]); role[j] = 0 :: else fi; \
        promised[j] = term[t].epoch; leader[j] = t; synced[j] = size[j]; \
        FORGET(t, j) \
        if :: term[t].step == FENCING -> answer(t, j) :: else fi }
    EACH(PROMISE)

    /* R3: adopt, an entry at a time; a source that has promised a newer epoch is not read any more. */
    :: d_step { (term[t].step == FENCING && FENCED(t)) ->
        choose(t);
        term[t].step = ADOPTING;
        printf("term %d: %d adopts the log of %d\n", t, term[t].node, term[t].source);
        if :: term[t].source == term[t].node -> take_office(t); printf("term %d: leads\n", t) :: else fi }
    :: d_step { (term[t].step == ADOPTING && promised[term[t].source] == term[t].epoch) ->
        common(term[t].node, term[t].source);
        if
        :: size[term[t].node] > k -> cut_to(term[t].node, k); printf("term %d: %d cuts its log to %d\n", t, term[t].node, k)
        :: size[term[t].node] == k && k < size[term[t].source] ->
            log[term[t].node].at[k] = log[term[t].source].at[k]; size[term[t].node] = k + 1;
            printf("term %d: %d fetches entry %d\n", t, term[t].node, k)
        :: else -> take_office(t); printf("term %d: %d leads with %d entries\n", t, term[t].node, term[t].ends)
        fi;
        k = 0 }

    /* The leader writes, and syncs later. */
    :: d_step { (term[t].step == LEADS && size[term[t].node] < LSNS) ->
        printf("term %d: %d writes lsn %d\n", t, term[t].node, size[term[t].node]);
        log[term[t].node].at[size[term[t].node]] = t; size[term[t].node]++ }
    :: d_step { (term[t].step == LEADS && synced[term[t].node] < size[term[t].node]) ->
        printf("term %d: %d syncs\n", t, term[t].node);
        synced[term[t].node] = size[term[t].node] }

    /* R5, R6: a copy is compared and cut, then continued and synced, then acknowledged. */
#define CUT(j) \
    :: d_step { (term[t].step == LEADS && term[t].node != j && leader[j] == t && TAKES(t, j) && !(term[t].prefix & BIT(j))) -> \
        common(j, term[t].node); cut_to(j, k); synced[j] = k; \
        printf("term %d: %d is cut to %d\n", t, j, k); \
        term[t].prefix = term[t].prefix | BIT(j); term[t].acked[j] = k; k = 0 }
    EACH(CUT)
#define APPEND(j) \
    :: d_step { (term[t].step == LEADS && term[t].node != j && TAKES(t, j) && (term[t].prefix & BIT(j)) && \
            size[j] < size[term[t].node]) -> \
        common(j, term[t].node); \
        if \
        :: k == size[j] -> \
            log[j].at[k] = log[term[t].node].at[k]; size[j] = k + 1; term[t].acked[j] = k + 1; SYNC(j) \
            printf("term %d: %d takes lsn %d and acknowledges it\n", t, j, k) \
        :: else -> term[t].prefix = term[t].prefix & (255 - BIT(j)) \
        fi; \
        k = 0 }
#ifdef NO_R6
#define SYNC(j)
#else
#define SYNC(j) synced[j] = size[j];
#endif
    EACH(APPEND)

    /* R4: a copy that has everything of before the term is noted as opened. */
#define OPEN(j) \
    :: d_step { (term[t].step == LEADS && term[t].node != j && leader[j] == t && TAKES(t, j) && COMPLETE(t, j) && \
            !(term[t].opened & BIT(j))) -> \
        printf("term %d: %d opens epoch %d with %d entries\n", t, j, term[t].epoch, size[j]); \
        opened[j] = term[t].epoch; synced[j] = size[j]; term[t].opened = term[t].opened | BIT(j) }
    EACH(OPEN)

    /* R7: commit, and what must hold. A leader commits nothing that it has not synced itself. */
#ifdef NO_R7_OWN
#define OWN(t) size[term[t].node]
#else
#define OWN(t) synced[term[t].node]
#endif
#define COMMIT(x) \
    :: d_step { (term[t].step == LEADS && OWN(t) >= x && committed[x - 1] != log[term[t].node].at[x - 1]) -> \
        counted(t, x); \
        if \
        :: QUORUM(term[t].mode, votes) -> \
            k = 0; \
            do \
            :: k < x -> \
                printf("term %d: %d commits lsn %d, written in term %d\n", t, term[t].node, k, log[term[t].node].at[k]); \
                assert(committed[k] == 0 || committed[k] == log[term[t].node].at[k]); \
                committed[k] = log[term[t].node].at[k]; k++ \
            :: else -> break \
            od \
        :: else \
        fi; \
        votes = 0; k = 0 }
    COMMIT(1)
    COMMIT(2)

#ifdef CHANGE
    /* The leader replaces members: an own claim of the next epoch, by the rules of both sets, then of the new one. */
    :: d_step { (term[t].step == LEADS && terms == t && terms < TERMS && mode == 0) ->
        terms = t + 1; mode = 1;
        printf("term %d: %d changes the members in term %d\n", t, term[t].node, t + 1);
        term[t + 1].node = term[t].node; term[t + 1].epoch = t + 1; term[t + 1].mode = 1;
        term[t + 1].step = LEADS; term[t + 1].ends = synced[term[t].node];
        role[term[t].node] = t + 1; promised[term[t].node] = t + 1; opened[term[t].node] = t + 1;
        end_term(t) }
    :: d_step { (term[t].step == LEADS && terms == t && mode == 1 && ISOPEN(t)) ->
        printf("the old members are out of the record\n");
        mode = 2 }
    :: d_step { (term[t].step == LEADS && terms == t && mode == 2 && term[t].mode == 1) ->
        printf("term %d: only the new members count\n", t);
        term[t].mode = 2 }
#endif
    od
}

inline end_process(i) {
    if :: role[i] -> end_term(role[i]); role[i] = 0 :: else fi;
    leader[i] = 0;
    forget_links(i)
}

/* R1: one claim an epoch. */
#ifdef NO_R1
#define EPOCH(t) (t > 1 -> term[t - 1].epoch : 1)
#else
#define EPOCH(t) t
#endif

#ifdef NO_R2_LOST
#define LOSES(i) (promised[i] > opened[i])
#define LOSE(i) promised[i] = opened[i];
#else
#define LOSES(i) false
#define LOSE(i)
#endif

proctype Nodes(byte i) {
    do
    :: d_step { (terms < TERMS && role[i] == 0 && VOTES(mode, i) && (terms > 0 || i == FIRST) && EPOCH((terms + 1)) >= promised[i] &&
            (promised[i] < EPOCH((terms + 1)) || leader[i] == 0)) ->
        terms++;
        term[terms].node = i; term[terms].epoch = EPOCH(terms); term[terms].mode = mode; term[terms].step = FENCING;
        printf("%d claims: term %d, epoch %d\n", i, terms, term[terms].epoch);
        role[i] = terms; leader[i] = 0; promised[i] = term[terms].epoch; synced[i] = size[i];
        forget_links(i);
        answer(terms, i) }
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
    od
}

init {
    atomic {
        k = 1;
        do :: k <= TERMS -> run Terms(k); k++ :: else -> break od;
        k = 0;
        do :: k < N -> run Nodes(k); k++ :: else -> break od;
        k = 0
    }
}
