package sloth_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

var update = flag.Bool("update", false, "write the golden .err files")

func spelled(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// TestInvalid compares the whole error of each testdata/invalid-<what>.yaml
// with invalid-<what>.err: file, line, path, what is wrong and what to do.
func TestInvalid(t *testing.T) {
	names, err := filepath.Glob("testdata/invalid-*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".yaml"), func(t *testing.T) {
			set, err := spec.Load([]spec.File{read(t, name)}, readers(0))
			if err == nil {
				t.Fatal("loads without an error")
			}
			if diff := cmp.Diff(spec.Set{}, set); diff != "" {
				t.Errorf("half-loads: (-want, +got)\n%s", diff)
			}
			golden(t, strings.TrimSuffix(name, ".yaml")+".err", err.Error()+"\n")
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("no golden text (run with -update once, and read what it wrote): %v", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: (-want, +got)\n%s", file, diff)
	}
}

// FuzzRead: whatever stands in a file, it is read whole or refused with places,
// and what is read can be measured.
func FuzzRead(f *testing.F) {
	names, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(names) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, name := range names {
		f.Add(read(f, name).Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		readings, err := spec.Read([]spec.File{{Name: "fuzz.yaml", Data: data}}, readers(0))
		if err != nil {
			var faults spec.Faults
			if !errors.As(err, &faults) || len(faults) == 0 || len(readings) > 0 {
				t.Fatalf("error %T with %d readings: %v", err, len(readings), err)
			}
			return
		}
		for _, r := range readings {
			for _, o := range r.Objectives {
				checkReading(t, o)
			}
		}
	})
}

func checkReading(t *testing.T, o spec.ObjectiveReading) {
	t.Helper()
	ob := o.Objective
	if !spec.ValidName(o.Service) || !spec.ValidName(ob.ID) || !(ob.Target > 0 && ob.Target < 1) || ob.Window <= 0 {
		t.Errorf("objective %+v", o)
	}
	qs := ob.Indicator.Queries()
	if len(qs) == 0 || (ob.Indicator.Raw == nil) != (ob.Indicator.Total != nil) {
		t.Errorf("indicator %+v", ob.Indicator)
	}
	for _, q := range qs {
		if err := q.Check(); err != nil || q.Pos.Line == 0 {
			t.Errorf("query %+v: %v", q, err)
		}
	}
}
