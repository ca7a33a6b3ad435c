package freezefile_test

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile/freezefile"
)

// TestSettled: a freeze is acknowledged when the sends that had begun are over,
// and says so when they are not.
func TestSettled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "setpoint.freeze")
	agent, person := freezefile.New(path, clock), freezefile.New(path, clock)
	first, err := agent.Sending()
	if err != nil {
		t.Fatal(err)
	}
	second, err := agent.Sending()
	if err != nil {
		t.Fatalf("two services send at a time: %v", err)
	}
	if err := person.Write(ledger.Freeze{ID: "f1", By: "os:alice", Reason: "stop"}); err != nil {
		t.Fatal(err)
	}
	first()
	if settled, err := person.Settled(0); err != nil || settled {
		t.Errorf("with a send under way: settled %v, %v", settled, err)
	}
	over := make(chan struct{})
	go func() { defer close(over); second() }()
	if settled, err := person.Settled(time.Minute); err != nil || !settled {
		t.Errorf("after the last send: settled %v, %v", settled, err)
	}
	<-over
	if done, err := agent.Sending(); err != nil {
		t.Errorf("the lock outlives its question: %v", err)
	} else {
		done()
	}
	files, err := person.List()
	if err != nil || len(files) != 1 {
		t.Errorf("the lock counts as a freeze: %v, %v", files, err)
	}
}

// TestSendingIsNoPipe: a stranger's pipe in its place hangs neither the agent nor
// the person who freezes.
func TestSendingIsNoPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "setpoint.freeze")
	dir := freezefile.New(path, clock)
	if err := dir.Make(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(path, ".sending"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Sending(); err == nil {
		t.Error("sent beside a pipe")
	}
	if _, err := dir.Settled(time.Minute); err == nil {
		t.Error("settled by a pipe")
	}
}
