"""Which segments go and when: disk space, clock checks, removal, scrubbing, the lake's positions."""
