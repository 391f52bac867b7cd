/* What is on the disks of replicas, what a term is, and what both processes of replication.pml do with them.

A term is a won claim; its number is the claim's id, and `epoch` has its epoch, which two terms can share once the record has
gone back. An entry of a log is the number of the term that wrote it, so that two entries at one lsn are the same only if
they are the same record. Messages are not modelled as such: what a replica has answered is a fact of a term (masks and
arrays below), which its leader may use at any later time, or never; so they are delayed and lost, and processes pause. */

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

#ifndef FIRST
#define FIRST 0 /* claims first: other runs are the same with other names. With CHANGE, 2 stays a member, 0 does not */
#endif

/* Steps of a term. */
#define GONE 0
#define FENCING 1
#define ADOPTING 2
#define CHANGING 3 /* it leads, and majorities of the old and the new members have not promised its change */
#define LEADS 4

#define DOUBTED (TERMS + 1) /* instead of an opened term: the copy may lack what it has acknowledged */

#define E(t) epoch[t]
#define BIT(j) (1 << (j))
#define ME(t) BIT(term[t].node)

/* Members: mode 0 are the old ones, 1 both, 2 the new ones. */
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
    byte node; byte step; byte mode;
    byte ends;                  /* what the leader had when it took office */
    byte source;                /* whose log is adopted */
    byte promised;              /* mask: who has answered the fence with a sound copy, with: */
    byte saidopened[N]; byte saidlen[N];
    byte prefix;                /* mask: whose copy was compared and cut */
    byte opened;                /* mask: who has said that it has opened the term */
    byte acked[N];              /* up to where it has said that it has synced */
    byte evidence;              /* the highest mark that an answer has named, of sound and doubted copies */
    byte committed              /* up to where the leader knows it */
};

/* On disks. */
Log log[N];
byte size[N], synced[N];
byte promised[N], opened[N];    /* terms: epoch and id */
byte members[N];                /* the newest that it was told */
byte mark[N];                   /* the committed mark, the higher one of the two places: it only grows */
byte kept[N];                   /* ... and the one beside the log, which is as old as the log */
bool forgot[N];                 /* a doubt about promises: what it has promised may be missing */

/* In memory. */
byte leader[N];                 /* the term whose link it follows, 0: none */
byte role[N];                   /* the term that it leads or claims, 0: none */
Term term[TERMS + 1];
byte epoch[TERMS + 2];

/* The record of the control plane: the last claim, and the members that it names. */
byte record, mode;
byte recorded[TERMS + 1];       /* which members the record of a term has named; 3: 1, then 2 */

byte terms, crashes;
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
    assert(!(size[j] > count && kept[j] > count)); /* no copy loses a record below its mark */
    n = count;
    do
    :: n < LSNS -> log[j].at[n] = 0; n++
    :: else -> break
    od;
    if :: size[j] > count -> size[j] = count :: else fi;
    if :: synced[j] > count -> synced[j] = count :: else fi;
    n = 0
}

/* Two histories with one epoch never mix in a copy. */
inline check_mix(j) {
    n = 1;
    do
    :: n < size[j] && n < LSNS ->
        assert(log[j].at[n - 1] == log[j].at[n] || E(log[j].at[n - 1]) != E(log[j].at[n]));
        n++
    :: else -> break
    od;
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

/* R11: a doubted copy is none of the majority; its mark is evidence all the same. */
#ifdef NO_R11
#define SOUND(j) true
#else
#define SOUND(j) (opened[j] != DOUBTED)
#endif
inline answer(t, j) {
    if
    :: SOUND(j) ->
        term[t].promised = term[t].promised | BIT(j);
        term[t].saidopened[j] = opened[j];
        term[t].saidlen[j] = size[j]
    :: else
    fi;
    if :: mark[j] > term[t].evidence -> term[t].evidence = mark[j] :: else fi
}

/* What is not needed any more is set to 0, so that fewer states differ. */
inline clear_answers(t) {
    term[t].promised = 0; term[t].source = 0; term[t].evidence = 0; n = 0;
    do
    :: n < N -> term[t].saidopened[n] = 0; term[t].saidlen[n] = 0; n++
    :: else -> break
    od;
    n = 0
}

inline end_term(t) {
    term[t].step = GONE; term[t].ends = 0; term[t].prefix = 0; term[t].opened = 0; term[t].mode = 0; term[t].node = 0;
    term[t].committed = 0;
    clear_answers(t);
    do
    :: n < N -> term[t].acked[n] = 0; n++
    :: else -> break
    od;
    n = 0
}

inline end_process(i) {
    if :: role[i] -> end_term(role[i]); role[i] = 0 :: else fi;
    leader[i] = 0;
    forget_links(i)
}

#ifdef NO_R2_LOST
#define LOSES(i) (E(promised[i]) > E(opened[i]))
#define LOSE(i) promised[i] = opened[i];
#else
#define LOSES(i) false
#define LOSE(i)
#endif

#include "faults.pml"
