package openslo_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

// FuzzRead: whatever stands in a file of any format, it is read whole or
// refused with places; what is read can be measured, and written as OpenSLO it
// reads the same.
func FuzzRead(f *testing.F) {
	for _, glob := range []string{"testdata/*.yaml", "testdata/cases/*.yaml", "../sloth/testdata/valid*.yaml", "../pyrra/testdata/valid*.yaml"} {
		names, err := filepath.Glob(glob)
		if err != nil || len(names) == 0 {
			f.Fatalf("no seeds in %s: %v", glob, err)
		}
		for _, name := range names {
			f.Add(readFile(f, name).Data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		readings, err := spec.Read([]spec.File{{Name: "fuzz.yaml", Data: data}}, formats)
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
	if !spec.ValidName(o.Service) || !(ob.Target > 0 && ob.Target < 1) || ob.Window <= 0 || ob.Pos.Line == 0 {
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
	if ob.Slice != 0 {
		return // Its own document says more than the objective.
	}
	text, err := openslo.Write("From fuzz.yaml.", o)
	if err != nil {
		t.Fatalf("cannot be written: %v", err)
	}
	again, err := spec.Read([]spec.File{{Name: "again.yaml", Data: text}}, formats)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	ob.ID = ob.SLO // Alone it needs no name of its own.
	ob.GroupBy = nil
	if diff := cmp.Diff(ob, again[0].Objectives[0].Objective, cmpopts.IgnoreTypes(spec.Position{})); diff != "" {
		t.Fatalf("(-want, +got)\n%s\n%s", diff, text)
	}
}
