import cython

from commitlog.chunk cimport Chunk
from router.commands cimport Appended
from router.shard cimport Shard as Router
from rumq.mqtt.kernels.batch cimport Batch
from rumq.mqtt.kernels.trace_context cimport Sampler
from rumq.session.connection.pending_acks cimport AckTracker
from rumq.session.state.histogram cimport Histogram
from rumq.session.state.shard_totals cimport ShardTotals
from rumq.shards.delivery.retained_delivery cimport RetainedDelivery
from rumq.shards.turn.effect_dispatch cimport EffectDispatch
from rumq.shards.turn.queues cimport ReadyLinks, StepQueue
from rumq.shards.turn.scheduler cimport ShardClock, TimerQueue


cdef class Turn:
    cdef public dict _own
    cdef public list _senders, batches
    cdef public ShardClock clock
    cdef public TimerQueue timers
    cdef public StepQueue commands
    cdef public ReadyLinks ready
    cdef public EffectDispatch effects
    cdef public RetainedDelivery _retained
    cdef public Router _router
    cdef public tuple _stages, _deadlines
    cdef public bint _is_plain, _stages_wait, _was_quiet
    cdef public double stage_seconds, _began, _stages_due, _wake_at
    cdef public Histogram durations
    cdef public ShardTotals _totals
    cdef public AckTracker _acks
    cdef public Sampler sampler
    cdef public object _alone, _peers, _tracer, events

    @cython.locals(batch=Batch, sampler=Sampler, chunk=Chunk, index=Py_ssize_t)
    cpdef settle(self)
    @cython.locals(router=Router, commands=StepQueue, _=Py_ssize_t)
    cpdef step(self)
    cpdef _run_stages(self)
