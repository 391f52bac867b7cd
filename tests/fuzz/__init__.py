"""Every door through which a stranger's bytes come in, fed with what no client should send.

A target is one door: it takes a batch of inputs, made from valid ones by `kernels/mutate.py`, and raises `Wrong` where
the broker's code raises what it has not declared, does not come back, or says what does not agree with the bytes."""
