package shop

// inject breaks something.
func (c *core) inject(f Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch f {
	case BadRelease:
		c.badRelease = true
		c.release(badVersion)
	case PoisonedWorkers:
		// The next two in turn, so that each recycle mends one of them.
		c.poisoned[c.next%shards] = true
		c.poisoned[(c.next+1)%shards] = true
	case DeadExporter:
		c.deadExporter = true
	case SelfHealing:
		c.healAt = c.clock + healAfter
	case Unfixable:
		c.unfixable = true
	}
}

// release runs a version of checkout.
func (c *core) release(version string) {
	if version == c.version {
		return
	}
	c.previous, c.version = c.version, version
	c.announce(Checkout, version)
}

// rollback runs another version of checkout. Only the one that ends a bad
// release is free of harm; any other change restarts what was serving.
func (c *core) rollback(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.broken()
	c.release(version)
	if !was || c.broken() {
		c.pause(Checkout, 0.5)
	}
}

// scale sets checkout's replicas, for which half of them are rolled.
func (c *core) scale(replicas int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replicas = replicas
	c.replicaset.Set(float64(replicas))
	c.pause(Checkout, 0.5)
}

// recycle restarts the next shard of workers, which mends it if it was
// poisoned and loses its jobs if it was not.
func (c *core) recycle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	shard := c.next % shards
	c.next++
	if !c.poisoned[shard] {
		c.pause(Fulfilment, 1.0/shards)
	}
	c.poisoned[shard] = false
}

// restart restarts catalog, which is never ill.
func (c *core) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pause(Catalog, 1)
}

func (c *core) pause(service string, share float64) {
	c.pauses[service] = pause{until: c.clock + restartTime, share: share}
}

// deployed is the state of checkout's release.
func (c *core) deployed() (version, previous string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version, c.previous
}
