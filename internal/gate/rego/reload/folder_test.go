package reload_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/reload"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// do runs steps that must work.
func do(t *testing.T, steps ...error) {
	t.Helper()
	for _, err := range steps {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// notified runs a notifier of a folder until the test ends.
func notified(t *testing.T, folder string, every time.Duration) (hints <-chan struct{}, faults func() []string) {
	var mu sync.Mutex
	var told []string
	n := reload.NewNotifier(folder, every, func(err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprint(err))
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return n.Hints(), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return told
	}
}

func heard(hints <-chan struct{}) bool {
	select {
	case <-hints:
		return true
	case <-time.After(20 * time.Second):
		return false
	}
}

// rest takes what belongs to the same change, and may come a burst later.
func rest(hints <-chan struct{}) {
	time.Sleep(3 * reload.Burst)
	select {
	case <-hints:
	default:
	}
}

// Every way in which people and programs change a folder is heard of, long
// before the next interval.
func TestNotifier(t *testing.T) {
	steps := []struct {
		reason string
		do     func(t *testing.T, dir string)
	}{
		{"a file is written", func(t *testing.T, dir string) { put(t, filepath.Join(dir, "gate.rego"), "a") }},
		{"an editor renames its copy over it", func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, ".gate.rego.swp"), "b")
			do(t, os.Rename(filepath.Join(dir, ".gate.rego.swp"), filepath.Join(dir, "gate.rego")))
		}},
		{"a folder is made", func(t *testing.T, dir string) { do(t, os.Mkdir(filepath.Join(dir, "team"), 0o755)) }},
		{"a file is written in it", func(t *testing.T, dir string) { put(t, filepath.Join(dir, "team", "a.rego"), "a") }},
		{"the folder is removed", func(t *testing.T, dir string) { do(t, os.RemoveAll(filepath.Join(dir, "team"))) }},
		{"a mounted ConfigMap is swapped", func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "..2026", "gate.rego"), "c")
			do(t, os.Symlink("..2026", filepath.Join(dir, "..data_tmp")),
				os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
		}},
	}
	dir := t.TempDir()
	hints, faults := notified(t, dir, time.Hour)
	if !heard(hints) {
		t.Fatal("what happened before it watched is not known, so the first look is a hint")
	}
	for _, s := range steps {
		s.do(t, dir)
		if !heard(hints) {
			t.Fatalf("%s: no hint", s.reason)
		}
		rest(hints)
	}
	if got := faults(); got != nil {
		t.Errorf("faults: %v", got)
	}
}

// A folder that cannot be watched is looked at in each interval alone, and is
// watched again once it is there: removed and made again it is another one.
func TestNotifierFindsFoldersAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "policies")
	hints, faults := notified(t, dir, 50*time.Millisecond)
	told := func(n int) {
		t.Helper()
		until(t, fmt.Sprintf("change %d to be told of", n), func() bool { return len(faults()) >= n })
		if f := faults()[n-1]; len(faults()) > n || (f == "<nil>") != (n%2 == 0) {
			t.Fatalf("told of %q, want each change once", faults())
		}
	}
	told(1)
	for n := 2; n <= 4; n += 2 {
		do(t, os.Mkdir(dir, 0o755))
		told(n)
		if !heard(hints) {
			t.Fatal("no hint of a folder that came back")
		}
		rest(hints)
		put(t, filepath.Join(dir, "gate.rego"), "a")
		if !heard(hints) {
			t.Fatal("no hint of a file in a folder that came back")
		}
		do(t, os.RemoveAll(dir))
		told(n + 1)
	}
}

// until waits for something that must come.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestNotifierEnds(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		ctx, stop := context.WithCancel(t.Context())
		n := reload.NewNotifier(t.TempDir(), time.Hour, func(error) {})
		go func() {
			<-n.Hints()
			stop()
		}()
		n.Run(ctx)
	}
	until(t, "all goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}

// version is a policy of three files that fit each other alone: each rule names
// the version, and the tests want both rules of theirs.
func version(n int) map[string]string {
	return map[string]string{
		"grant.rego": fmt.Sprintf(`package setpoint.gate

# METADATA
# title: Everything may be done
# custom: {remedy: none}
auto contains "grant-%[1]d" if input.version
`, n),
		"refuse.rego": fmt.Sprintf(`package setpoint.gate

# METADATA
# title: Nothing may be done
# custom: {remedy: none}
deny contains "refuse-%[1]d" if input.version
`, n),
		"gate_test.rego": fmt.Sprintf(`package setpoint.gate_test

import data.setpoint.gate

test_both if {
	gate.auto == {"grant-%[1]d"} with input as {"version": "v1"}
	gate.deny == {"refuse-%[1]d"} with input as {"version": "v1"}
}
`, n),
	}
}

// Files that are copied one by one, with pauses in which the folder holds still,
// while decisions are made all the time: no ruling is of two versions, or of a
// part of one. A policy without its refusals would grant everything.
func TestNoRulingFromHalfAFolder(t *testing.T) {
	const still = 50 * time.Millisecond
	dir := t.TempDir()
	for name, text := range version(0) {
		put(t, filepath.Join(dir, name), text)
	}
	first, err := reload.Load(t.Context(), os.DirFS(dir), reload.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	var inForce atomic.Pointer[rego.Policy]
	inForce.Store(first.Policy)
	n := reload.NewNotifier(dir, time.Second, func(error) {})
	w := reload.New(reload.Options{
		Open: func() (fs.FS, error) { return os.DirFS(dir), nil }, Interval: 50 * time.Millisecond, Still: still,
		Hints: n.Hints(), Now: time.Now, InForce: first.Policy.Bundle(), Changed: func(reload.State) {},
		Swap: func(_ context.Context, l reload.Loaded) error {
			inForce.Store(l.Policy)
			return nil
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { n.Run(ctx) })
	running.Go(func() { w.Run(ctx) })
	in := gate.ExampleInput()
	var decisions atomic.Int64
	running.Go(func() {
		for ctx.Err() == nil {
			if r := inForce.Load().Evaluate(context.Background(), in); !whole(r) {
				t.Errorf("a ruling of half a folder: %+v", r)
				return
			}
			decisions.Add(1)
		}
	})
	orders := [][]string{
		{"grant.rego", "refuse.rego", "gate_test.rego"}, {"gate_test.rego", "grant.rego", "refuse.rego"}, {"refuse.rego", "gate_test.rego", "grant.rego"},
	}
	for v := 1; v <= 6; v++ {
		files, order := version(v), orders[v%len(orders)]
		if v%2 == 0 { // a copy that begins with an empty folder
			for _, name := range order {
				do(t, os.Remove(filepath.Join(dir, name)))
			}
		}
		for i, name := range order {
			put(t, filepath.Join(dir, name), files[name])
			if i < len(order)-1 {
				time.Sleep(3*still + time.Duration(v)*10*time.Millisecond)
			}
		}
		want := fmt.Sprintf("refuse-%d", v)
		until(t, fmt.Sprintf("version %d", v), func() bool {
			r := inForce.Load().Evaluate(context.Background(), in)
			return len(r.Deny) == 1 && r.Deny[0].Reason == want
		})
	}
	if decisions.Load() < 100 {
		t.Errorf("%d decisions, which cannot have met a swap", decisions.Load())
	}
}

// whole reports whether both rules of one version ruled, and nothing else.
func whole(r gate.Ruling) bool {
	if r.Fault != "" || len(r.Auto) != 1 || len(r.Deny) != 1 {
		return false
	}
	var a, b int
	_, err := fmt.Sscanf(r.Auto[0].Reason+" "+r.Deny[0].Reason, "grant-%d refuse-%d", &a, &b)
	return err == nil && a == b
}
