package faultproxy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/lab/faultproxy"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason, in string
		want       faultproxy.Fault
		err        string
	}{
		"Pass":      {"a kind alone", "pass", faultproxy.Fault{Kind: faultproxy.Pass}, ""},
		"All":       {"numbers and flags", "cut-reply,bytes=10,fin", faultproxy.Fault{Kind: faultproxy.CutReply, Bytes: 10, FIN: true}, ""},
		"Match":     {"text as it is", "blackhole,match=a = b ", faultproxy.Fault{Kind: faultproxy.Blackhole, Match: "a = b "}, ""},
		"Delay":     {"a duration", "slow-reply,delay=20ms", faultproxy.Fault{Kind: faultproxy.SlowReply, Delay: 20 * time.Millisecond}, ""},
		"Last":      {"the second reply", "duplicate,last", faultproxy.Fault{Kind: faultproxy.Duplicate, Last: true}, ""},
		"Empty":     {"no kind", "", faultproxy.Fault{}, "no such kind"},
		"Unknown":   {"another kind", "explode", faultproxy.Fault{}, "have blackhole, cut-reply"},
		"Ignored":   {"what would be ignored is a mistake", "blackhole,bytes=3", faultproxy.Fault{}, `takes no "bytes"; it takes: match`},
		"Nothing":   {"a kind without parameters", "pass,fin", faultproxy.Fault{}, "it takes: nothing"},
		"Twice":     {"which of the two?", "cut-reply,bytes=1,bytes=2", faultproxy.Fault{}, "given twice"},
		"NoNumber":  {"a word", "cut-reply,bytes=all", faultproxy.Fault{}, "want a number"},
		"NoValue":   {"nothing", "cut-reply,bytes", faultproxy.Fault{}, "wants a value"},
		"Flag":      {"a flag with a value", "cut-reply,fin=no", faultproxy.Fault{}, "it has no value"},
		"Negative":  {"a count", "cut-reply,bytes=-1", faultproxy.Fault{}, "negative"},
		"NoDelay":   {"a delay of nothing is no fault", "delay-reply", faultproxy.Fault{}, "delay is missing"},
		"Unit":      {"a delay without unit", "delay-reply,delay=3", faultproxy.Fault{}, "missing unit"},
		"BadStatus": {"no status", "status,status=99", faultproxy.Fault{}, "not between 200 and 599"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := faultproxy.Parse(tc.in)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v, -want +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"pass", "cut-reply,bytes=10,fin", "blackhole,match=a b", "slow-reply,delay=1ms", "duplicate,last", "wrong-length,length=3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		fault, err := faultproxy.Parse(s)
		if err != nil {
			return
		}
		again, err := faultproxy.Parse(fault.String())
		if err != nil || again != fault {
			t.Errorf("%q is %+v, printed as %q, read as %+v, %v", s, fault, fault, again, err)
		}
	})
}

func TestHelpNamesEachKind(t *testing.T) {
	for _, k := range faultproxy.Kinds() {
		if !strings.Contains(faultproxy.Help(), "\n  "+string(k)) && !strings.HasPrefix(faultproxy.Help(), "  "+string(k)) {
			t.Errorf("%s is not in the list", k)
		}
	}
}
