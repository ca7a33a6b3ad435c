package measure_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

var changeDay = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func deploy(service, version string, ago time.Duration) measure.Change {
	return measure.Change{At: changeDay.Add(-ago), Service: service, What: "deploy", Version: version}
}

func TestParseChanges(t *testing.T) {
	const good = `{"time":"2026-11-30T12:00:00Z","service":"checkout","what":"deploy","version":"v1"}`
	want := deploy("checkout", "v1", 0)
	long := strings.Repeat("x", measure.MaxChangeWord+1)
	fault := func(line, offset int, text string) []measure.ChangeFault {
		return []measure.ChangeFault{{ChangePlace: measure.ChangePlace{Line: line, Offset: offset}, Text: text}}
	}
	tests := map[string]struct {
		reason  string
		text    string
		changes []measure.Change
		faults  []measure.ChangeFault
		read    int
	}{
		"Good":       {"a finished line", good + "\n", []measure.Change{want}, nil, len(good) + 1},
		"NoEnd":      {"the last line need not end, where a person edits the file", good, []measure.Change{want}, nil, len(good)},
		"Unfinished": {"somebody is still writing it: no fault, and it is read again", good + "\n" + good[:30], []measure.Change{want}, nil, len(good) + 1},
		"Fraction":   {"times are cut to whole seconds, as those are that are posted", strings.Replace(good, "12:00:00Z", "12:00:00.987Z", 1), []measure.Change{want}, nil, len(good) + 4},
		"Zone":       {"another zone is the same moment", strings.Replace(good, "12:00:00Z", "13:00:00+01:00", 1), []measure.Change{want}, nil, len(good) + 5},
		"NoVersion": {
			"a flag that was flipped has none", `{"time":"2026-11-30T12:00:00Z","service":"checkout","what":"flag"}`,
			[]measure.Change{{At: changeDay, Service: "checkout", What: "flag"}}, nil, 66,
		},
		"Blank":      {"blank lines and CRLF say nothing", "\r\n\n" + good + "\r\n", []measure.Change{want}, nil, len(good) + 5},
		"BadBetween": {"a bad line stops no good one", good + "\nnonsense\n" + good + "\n", []measure.Change{want, want}, fault(2, len(good)+1, `want one JSON object {"time", "service", "what", "version"}`), 2*len(good) + 11},
		"UnknownKey": {"a key that nobody reads was meant to say something", strings.Replace(good, `"what"`, `"who":"x","what"`, 1) + "\n", nil, fault(1, 0, "a key is none of time, service, what, version"), len(good) + 11},
		"OtherCase":  {"and so was one in another spelling", strings.Replace(good, `"what"`, `"What"`, 1) + "\n", nil, fault(1, 0, "a key is none of time, service, what, version"), len(good) + 1},
		"Twice":      {"readers differ in which one they take", strings.Replace(good, `"what"`, `"service":"x","what"`, 1) + "\n", nil, fault(1, 0, "service stands there twice"), len(good) + 15},
		"NoText":     {"a number is no version", strings.Replace(good, `"v1"`, `1`, 1) + "\n", nil, fault(1, 0, "version must be a text"), len(good) - 2},
		"NoTime":     {"without a time it cannot be placed", `{"service":"a","what":"b"}` + "\n", nil, fault(1, 0, "time is missing"), 27},
		"NoService":  {"nobody knows whose it is", `{"time":"2026-11-30T12:00:00Z","what":"b"}` + "\n", nil, fault(1, 0, "service is missing"), 43},
		"NoWhat":     {"nothing was done", `{"time":"2026-11-30T12:00:00Z","service":"b","what":""}` + "\n", nil, fault(1, 0, "what is missing"), 56},
		"BadTime":    {"a time without a zone is a guess", `{"time":"2026-11-30 12:00:00"}` + "\n", nil, fault(1, 0, "time must be like 2026-01-31T18:00:00Z"), 31},
		"BeyondTime": {"in UTC it has five digits, and one such line would keep all from being listed", strings.Replace(good, "2026-11-30T12:00:00Z", "9999-12-31T23:59:59-14:00", 1) + "\n", nil, fault(1, 0, "time is beyond the years 0 to 9999"), len(good) + 6},
		"BeforeTime": {"and so at the other end", strings.Replace(good, "2026-11-30T12:00:00Z", "0000-01-01T00:00:00+14:00", 1) + "\n", nil, fault(1, 0, "time is beyond the years 0 to 9999"), len(good) + 6},
		"Long":       {"more than 200 bytes", strings.Replace(good, "v1", long, 1) + "\n", nil, fault(1, 0, "version has 201 bytes, want 200 at most"), len(good) + 200},
		"Control":    {"a line end in a word forges a line of a prompt or a log", strings.Replace(good, "v1", `v1\n`, 1) + "\n", nil, fault(1, 0, "version has a control character"), len(good) + 3},
		"Bidi":       {"so does a right-to-left override", strings.Replace(good, "v1", `\u202ev1`, 1) + "\n", nil, fault(1, 0, "version has a control character"), len(good) + 7},
		"Trailing":   {"two objects in one line", good + "{}\n", nil, fault(1, 0, "something follows the JSON object"), len(good) + 3},
		"Array":      {"no object", "[]\n", nil, fault(1, 0, `want one JSON object {"time", "service", "what", "version"}`), 3},
		"Endless":    {"a line that no three words need", strings.Repeat("x", 9000) + "\n", nil, fault(1, 0, "the line has 9000 bytes, want 8192 at most"), 9001},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := measure.ParseChanges([]byte(tc.text))
			if len(got.Places) != len(got.Changes) {
				t.Errorf("%d places of %d changes", len(got.Places), len(got.Changes))
			}
			got.Places = nil // TestPlacesOfChanges
			if diff := cmp.Diff(measure.ChangeLines{Changes: tc.changes, Faults: tc.faults, Read: tc.read}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPlacesOfChanges(t *testing.T) {
	const good = `{"time":"2026-11-30T12:00:00Z","service":"checkout","what":"deploy"}` + "\n"
	got := measure.ParseChanges([]byte("\n" + good + "nonsense\n" + good))
	want := []measure.ChangePlace{{Line: 2, Offset: 1}, {Line: 4, Offset: len(good) + 10}}
	if diff := cmp.Diff(want, got.Places); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// FuzzParseChanges: whatever a file holds, each change that comes out of it is
// fit to be shown, and a second look at the same bytes finds nothing new.
func FuzzParseChanges(f *testing.F) {
	f.Add([]byte(`{"time":"2026-11-30T12:00:00Z","service":"checkout","what":"deploy","version":"v1"}` + "\nx\n{"))
	f.Add([]byte("{\"time\":\"2026-11-30T12:00:00+23:59\",\"service\":\"\\ud800\",\"what\":\"\x00\"}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got := measure.ParseChanges(data)
		for _, c := range got.Changes {
			if err := c.Check(); err != nil {
				t.Errorf("%+v: %v", c, err)
			}
		}
		if got.Read < 0 || got.Read > len(data) {
			t.Fatalf("read %d of %d", got.Read, len(data))
		}
		again := measure.ParseChanges(data[:got.Read])
		if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("the unfinished end changes what comes before it:\n%s", diff)
		}
	})
}

func TestRecentChanges(t *testing.T) {
	many := func(service string, n int, every time.Duration) (out []measure.Change) {
		for i := range n {
			out = append(out, deploy(service, fmt.Sprint("v", i), time.Duration(i)*every))
		}
		return out
	}
	tests := map[string]struct {
		reason      string
		own, others []measure.Change
		want        []measure.Change
	}{
		"Order":  {"newest first, whoever reports", []measure.Change{deploy("a", "v1", time.Hour), deploy("a", "v2", time.Minute)}, []measure.Change{deploy("b", "w", 2*time.Minute)}, []measure.Change{deploy("a", "v2", time.Minute), deploy("b", "w", 2*time.Minute), deploy("a", "v1", time.Hour)}},
		"Twice":  {"posted and in the file: one change", []measure.Change{deploy("a", "v1", 0), deploy("a", "v1", 0)}, nil, []measure.Change{deploy("a", "v1", 0)}},
		"Old":    {"a week ends it", []measure.Change{deploy("a", "v1", measure.ChangesKept), deploy("a", "v0", measure.ChangesKept+1)}, nil, []measure.Change{deploy("a", "v1", measure.ChangesKept)}},
		"Future": {"a clock may be five minutes ahead, no more", []measure.Change{deploy("a", "v1", -measure.ChangeAhead), deploy("a", "v2", -measure.ChangeAhead-1)}, nil, []measure.Change{deploy("a", "v1", -measure.ChangeAhead)}},
		"NoTime": {"without a time nothing can be ordered", []measure.Change{{Service: "a", What: "x"}}, nil, nil},
		"Busy": {
			"a dependency that changes each second leaves room for the service's own",
			many("a", 30, time.Hour), many("b", 30, time.Second),
			slices.Concat(many("b", 10, time.Second), many("a", 10, time.Hour)),
		},
		"Alone": {"without others all room is its own", many("a", 30, time.Minute), nil, many("a", 20, time.Minute)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			slices.SortFunc(tc.want, measure.Change.Newest)
			got := measure.RecentChanges(changeDay, tc.own, tc.others)
			if len(got) == 0 && len(tc.want) == 0 {
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// The order in which three feeds are read is no information.
func TestRecentChangesIgnoreTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := func(service string) []measure.Change {
			return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) measure.Change {
				return deploy(service, rapid.SampledFrom([]string{"v1", "v2", ""}).Draw(t, "version"), time.Duration(rapid.IntRange(-10, 200).Draw(t, "hours"))*time.Hour)
			}), 0, 40).Draw(t, service)
		}
		own, others := list("a"), list("b")
		want := measure.RecentChanges(changeDay, own, others)
		got := measure.RecentChanges(changeDay, rapid.Permutation(own).Draw(t, "own"), rapid.Permutation(others).Draw(t, "others"))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if len(got) > measure.MaxChanges || !slices.IsSortedFunc(got, measure.Change.Newest) {
			t.Fatalf("%d changes: %v", len(got), got)
		}
	})
}

// The example of the documentation is read without a fault.
func TestChangesOfTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../slo/README.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, `{"time"`) {
			n++
			if got := measure.ParseChanges([]byte(line)); len(got.Changes) != 1 {
				t.Errorf("%s: %v", line, got.Faults)
			}
		}
	}
	if n == 0 {
		t.Error("slo/README.md shows no line of a change feed")
	}
}
