package freezefile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile/freezefile"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return now }

func TestWriteListRemove(t *testing.T) {
	dir := freezefile.New(filepath.Join(t.TempDir(), "setpoint.freeze"), clock)
	want := ledger.Freeze{ID: "f1", Service: "checkout", By: "os:alice", Reason: "migration", Until: now.Add(time.Hour), At: now}
	if err := dir.Write(want); err != nil {
		t.Fatal(err)
	}
	got, err := dir.List()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]ledger.Freeze{want}, got); diff != "" {
		t.Errorf("list after write (-want, +got):\n%s", diff)
	}
	if err := dir.Write(want); err == nil {
		t.Error("a second freeze of the same id must not overwrite the first")
	}
	for range 2 {
		if err := dir.Remove("f1"); err != nil {
			t.Fatalf("remove, also of what is gone: %v", err)
		}
	}
	if got, err := dir.List(); err != nil || len(got) != 0 {
		t.Errorf("after remove: %v, %v", got, err)
	}
}

// TestWriteBounds: a file over the limit freezes everything unread, so it is
// never written for a freeze of one service.
func TestWriteBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "setpoint.freeze")
	dir := freezefile.New(path, clock)
	for n := 60 << 10; n < 70<<10; n += 256 {
		f := ledger.Freeze{ID: "long", Service: "checkout", By: "os:alice", Reason: strings.Repeat("x", n), At: now}
		if err := dir.Write(f); err != nil {
			if _, missing := os.Stat(filepath.Join(path, "long.json")); !os.IsNotExist(missing) {
				t.Fatalf("%d: refused (%v) and yet written", n, err)
			}
			continue
		}
		if got, err := dir.List(); err != nil || len(got) != 1 || got[0].Service != "checkout" {
			t.Fatalf("%d: what was written is not read back: %.80v, %v", n, got, err)
		}
		if err := dir.Remove("long"); err != nil {
			t.Fatal(err)
		}
	}
	if err := dir.Write(ledger.Freeze{ID: "long", Reason: strings.Repeat("x", 900<<10)}); err == nil {
		t.Error("900 kB were accepted")
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "big.json"), []byte(`{"service":"search","reason":"`+strings.Repeat("x", 900<<10)+`"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if holds, err := dir.Frozen("checkout"); err != nil || len(holds) != 1 {
		t.Errorf("a file that is too long must freeze everything: %v, %v", holds, err)
	}
}

func TestFrozen(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  map[string]string
		ask    string
		want   []string
	}{
		"NoFolder":     {reason: "nobody ever froze anything", ask: "checkout"},
		"All":          {reason: "no service means every service", files: map[string]string{"a.json": `{"reason":"x"}`}, ask: "checkout", want: []string{"a"}},
		"Own":          {reason: "a freeze of the service binds it", files: map[string]string{"a.json": `{"service":"checkout"}`}, ask: "checkout", want: []string{"a"}},
		"Other":        {reason: "a freeze of another service does not", files: map[string]string{"a.json": `{"service":"search"}`}, ask: "checkout"},
		"Expired":      {reason: "its time has passed", files: map[string]string{"a.json": `{"until":"2026-03-01T12:00:00Z"}`}, ask: "checkout"},
		"NotYet":       {reason: "its time has not passed", files: map[string]string{"a.json": `{"until":"2026-03-01T12:00:01Z"}`}, ask: "checkout", want: []string{"a"}},
		"HalfWritten":  {reason: "a torn file freezes everything", files: map[string]string{"a.json": `{"service":"sea`}, ask: "checkout", want: []string{"a"}},
		"Empty":        {reason: "a crash before the first byte freezes too", files: map[string]string{"a.json": ``}, ask: "checkout", want: []string{"a"}},
		"WrongType":    {reason: "what is not understood freezes", files: map[string]string{"a.json": `{"service":7}`}, ask: "checkout", want: []string{"a"}},
		"Touched":      {reason: "a person who types touch means it", files: map[string]string{"stop": ``}, ask: "checkout", want: []string{"stop"}},
		"HiddenFile":   {reason: "a placeholder that keeps the folder in git is no freeze", files: map[string]string{".gitkeep": ``}, ask: "checkout"},
		"NameOutranks": {reason: "thaw removes by name", files: map[string]string{"a.json": `{"id":"b"}`}, ask: "checkout", want: []string{"a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "setpoint.freeze")
			for file, body := range tc.files {
				if err := os.MkdirAll(path, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(path, file), []byte(body), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			holds, err := freezefile.New(path, clock).Frozen(tc.ask)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range holds {
				got = append(got, h.ID)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFolderThatCannotBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "setpoint.freeze")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := freezefile.New(path, clock).Frozen("checkout"); err == nil {
		t.Error("nobody knows whether it is frozen, so it must be an error")
	}
}

func TestRemoveStaysInside(t *testing.T) {
	root := t.TempDir()
	victim := filepath.Join(root, "victim.json")
	if err := os.WriteFile(victim, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dir := freezefile.New(filepath.Join(root, "setpoint.freeze"), clock)
	for _, id := range []string{"../victim", "", ".", "..", "/etc/passwd"} {
		if err := dir.Remove(id); err == nil {
			t.Errorf("remove %q must be refused", id)
		}
	}
	if _, err := os.Stat(victim); err != nil {
		t.Error("a file outside of the folder was removed")
	}
}

func FuzzList(f *testing.F) {
	f.Add([]byte(`{"id":"a","service":"checkout","until":"2026-03-01T12:00:00Z"}`))
	f.Add([]byte(`{"service":`))
	f.Add([]byte(`null`))
	f.Add([]byte(`[]`))
	path := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(path, "a.json"), data, 0o644); err != nil {
			t.Fatal(err)
		}
		all, err := freezefile.New(path, clock).List()
		if err != nil || len(all) != 1 || all[0].ID != "a" {
			t.Fatalf("one file is one freeze, whatever it holds: %v, %v", all, err)
		}
	})
}
