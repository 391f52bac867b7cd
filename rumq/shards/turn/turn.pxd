import cython

from commitlog.chunk cimport Chunk
from commitlog.log.partition cimport Partition
from router.commands cimport appended
from router.shard cimport ShardRouter as Router
from rumq.loop.kernels cimport system_clock
from rumq.loop.queues cimport ReadyLinks, StepQueue
from rumq.loop.scheduler cimport ShardClock, TimerQueue
from rumq.loop.stage cimport Stage
from rumq.mqtt.kernels.batch cimport Batch
from rumq.mqtt.kernels.trace_context cimport Sampler
from rumq.net.turn_handler cimport TurnHandler
from rumq.session.connection.pending_acks cimport AckTracker
from rumq.session.state.histogram cimport Histogram
from rumq.session.state.shard_totals cimport ShardTotals
from rumq.shards.delivery.retained_delivery cimport RetainedDelivery
from rumq.shards.turn.effect_dispatch cimport EffectDispatch


cdef Py_ssize_t PLAIN_BYTES_MAX


cdef class BatchAppender:
    cdef public list _batches, _own, _senders
    cdef public StepQueue _commands
    cdef public ShardClock _clock
    cdef public ShardTotals _totals
    cdef public Sampler sampler
    cdef public bint is_plain
    cdef public Py_ssize_t unstaged_bytes
    cdef public object _tracer

    cpdef end_turn(self)
    @cython.locals(batch=Batch, index=Py_ssize_t)
    cpdef settle(self)
    @cython.locals(sampler=Sampler, chunk=Chunk, count=Py_ssize_t, flags=uint, log=Partition)
    cpdef _append(self, Py_ssize_t index, Batch batch)


cdef class Steps:
    cdef public StepQueue _commands
    cdef public ReadyLinks _ready
    cdef public BatchAppender _appender
    cdef public Router _router
    cdef public AckTracker _acks
    cdef public TimerQueue _timers
    cdef public EffectDispatch effects
    cdef public object _events, _peers, guard

    @cython.locals(appender=BatchAppender, router=Router, commands=StepQueue, _=Py_ssize_t)
    cpdef step(self)


cdef class Stages:
    cdef public double seconds, due_at, timed_at
    cdef public bint are_waiting
    cdef public tuple _timed, _each, _again, _deadlines

    cpdef bint are_due(self, double now, bint is_plain)
    @cython.locals(stage=Stage)
    cpdef run(self, double now)
    @cython.locals(stage=Stage)
    cpdef run_again(self)
    @cython.locals(other=double, stage=Stage)
    cpdef double earliest(self, double deadline) except -1


cdef class Turn(TurnHandler):
    cdef public ShardClock clock
    cdef public TimerQueue _timers
    cdef public StepQueue _commands
    cdef public ReadyLinks _ready
    cdef public BatchAppender appender
    cdef public Steps steps
    cdef public Stages stages
    cdef public RetainedDelivery _retained
    cdef public Router _router
    cdef public bint _was_quiet
    cdef public double _began, _wake_at
    cdef public Histogram durations
    cdef public object _events, _peers

    cpdef double begin_turn(self) except? -1
    cpdef end_turn(self)
    cpdef end_quiet_turn(self)
    cpdef double seconds_to_next_deadline(self) except? -1
    @cython.locals(router=Router, ready=ReadyLinks, timers=TimerQueue)
    cpdef double _next_deadline(self) except? -1
