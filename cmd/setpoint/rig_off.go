//go:build !crashtest

package main

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// rigClock and rigged are where the crash tests' build (tag crashtest) puts its
// clock, its kill points and its pauses. The agent that people run has none.
func rigClock(now func() time.Time) func() time.Time { return now }

func rigged(o reconcile.Options) reconcile.Options { return o }
