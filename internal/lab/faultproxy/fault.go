package faultproxy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is what goes wrong on a connection.
type Kind string

// The faults of bytes, which work for any protocol.
const (
	// Pass is no fault.
	Pass Kind = "pass"
	// Refuse closes the listener: nobody can connect. What stands stays.
	Refuse Kind = "refuse"
	// Reset takes a connection and resets it at once.
	Reset Kind = "reset"
	// DelayConnect waits before the upstream is connected.
	DelayConnect Kind = "delay-connect"
	// DelayReply waits before the first byte of the reply.
	DelayReply Kind = "delay-reply"
	// CutRequest ends both sides when so many bytes of the request have passed;
	// with 0 none passes.
	CutRequest Kind = "cut-request"
	// CutReply ends both sides when so many bytes of the reply have passed; with
	// 0 none passes, and what the request asked for has happened.
	CutReply Kind = "cut-reply"
	// Blackhole takes bytes and passes none on, in either direction.
	Blackhole Kind = "blackhole"
	// SlowRequest passes one byte of the request at a time.
	SlowRequest Kind = "slow-request"
	// SlowReply passes one byte of the reply at a time.
	SlowReply Kind = "slow-reply"
)

// The faults of HTTP/1.1, which take the first request of a connection and end
// it afterwards.
const (
	// Status answers a status and forwards nothing.
	Status Kind = "status"
	// StatusAfter forwards, and answers a status in place of the whole reply.
	StatusAfter Kind = "status-after"
	// DropReply forwards, reads the whole reply and ends without a word.
	DropReply Kind = "drop-reply"
	// Truncate returns so many bytes of the body under the whole one's length.
	Truncate Kind = "truncate"
	// WrongLength returns the body under another Content-Length.
	WrongLength Kind = "wrong-length"
	// NoLength returns the body without a length; it ends with the connection,
	// after so many bytes if bytes is not 0.
	NoLength Kind = "no-length"
	// Duplicate sends the same bytes to the upstream twice, one after the other
	// on two connections, and returns the first reply, or with Last the second.
	Duplicate Kind = "duplicate"
	// Replay forwards nothing and returns the last reply that an earlier
	// connection got; 502 if there is none.
	Replay Kind = "replay"
)

// Fault is a kind with what it needs. The zero Fault passes everything.
type Fault struct {
	Kind Kind
	// Delay is of delay-connect and delay-reply, and for slow-request and
	// slow-reply the time between two bytes.
	Delay time.Duration
	// Bytes is of cut-request, cut-reply, truncate and no-length.
	Bytes int
	// Status is of status and status-after.
	Status int
	// Length is of wrong-length.
	Length int
	// Match has a fault of bytes begin where this text occurs in the request, no
	// later than with its last byte; until then everything passes, and bytes are
	// counted from there. With cut-reply,match=commit a database commits and
	// nobody hears it.
	Match string
	// FIN ends a cut connection in order, in place of a reset.
	FIN bool
	// Last has duplicate return the second reply.
	Last bool
}

// trait is what a kind takes and how it is told to people.
type trait struct {
	takes string
	about string
	http  bool
}

var traits = map[Kind]trait{
	Pass:         {about: "no fault"},
	Refuse:       {about: "the listener is closed: nobody can connect"},
	Reset:        {about: "a connection is taken and reset at once"},
	DelayConnect: {takes: "delay", about: "wait before the upstream is connected"},
	DelayReply:   {takes: "delay match", about: "wait before the first byte of the reply"},
	CutRequest:   {takes: "bytes match fin", about: "end both sides after so many bytes of the request"},
	CutReply:     {takes: "bytes match fin", about: "end both sides after so many bytes of the reply"},
	Blackhole:    {takes: "match", about: "take bytes and pass none on, in either direction"},
	SlowRequest:  {takes: "delay match", about: "one byte of the request per delay"},
	SlowReply:    {takes: "delay match", about: "one byte of the reply per delay"},
	Status:       {takes: "status", about: "answer a status (503), forward nothing", http: true},
	StatusAfter:  {takes: "status", about: "forward, answer a status (502) in place of the reply", http: true},
	DropReply:    {takes: "fin", about: "forward, read the whole reply, end without a word", http: true},
	Truncate:     {takes: "bytes fin", about: "so many bytes of the body under the whole one's length", http: true},
	WrongLength:  {takes: "length", about: "the body under another Content-Length", http: true},
	NoLength:     {takes: "bytes", about: "the body without a length, so many bytes if not 0", http: true},
	Duplicate:    {takes: "last", about: "the same bytes to the upstream twice, the first reply is returned (last: the second)", http: true},
	Replay:       {about: "the last reply of an earlier connection, forward nothing", http: true},
}

// Kinds are all kinds, sorted.
func Kinds() []Kind { return slices.Sorted(maps.Keys(traits)) }

// Help is the list of faults for people, one a line.
func Help() string {
	var b strings.Builder
	for _, k := range Kinds() {
		name := string(k)
		for _, p := range strings.Fields(traits[k].takes) {
			name += "," + p
		}
		note := ""
		if traits[k].http {
			note = " (HTTP)"
		}
		fmt.Fprintf(&b, "  %-28s %s%s\n", name, traits[k].about, note)
	}
	return b.String()
}

// Parse reads a fault as people write it: the kind, then name=value or a flag,
// each behind a comma: cut-reply,bytes=10,fin. A match has no comma in it.
func Parse(s string) (Fault, error) {
	words := strings.Split(s, ",")
	f := Fault{Kind: Kind(words[0])}
	t, ok := traits[f.Kind]
	if !ok {
		return Fault{}, fmt.Errorf("fault %q: no such kind; have %s", words[0], kindList())
	}
	seen := map[string]bool{}
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		if !slices.Contains(strings.Fields(t.takes), name) {
			return Fault{}, fmt.Errorf("fault %s takes no %q; it takes: %s", f.Kind, name, takesOrNothing(t))
		}
		if seen[name] {
			return Fault{}, fmt.Errorf("fault %s: %s is given twice", f.Kind, name)
		}
		seen[name] = true
		if err := f.set(name, value, strings.Contains(w, "=")); err != nil {
			return Fault{}, fmt.Errorf("fault %s: %s: %w", f.Kind, name, err)
		}
	}
	return f, f.Check()
}

func kindList() string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

func takesOrNothing(t trait) string {
	if t.takes == "" {
		return "nothing"
	}
	return strings.ReplaceAll(t.takes, " ", ", ")
}

// set sets one parameter; given is whether a value was written.
func (f *Fault) set(name, value string, given bool) (err error) {
	switch {
	case name == "fin" || name == "last":
		if given {
			return errors.New("is a flag, it has no value")
		}
		f.FIN, f.Last = f.FIN || name == "fin", f.Last || name == "last"
	case value == "":
		return errors.New("wants a value")
	case name == "delay":
		f.Delay, err = time.ParseDuration(value)
	case name == "match":
		f.Match = value
	default:
		n, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("want a number, not %q", value)
		}
		*map[string]*int{"bytes": &f.Bytes, "status": &f.Status, "length": &f.Length}[name] = n
	}
	return err
}

// String is the form that Parse reads.
func (f Fault) String() string {
	if f.Kind == "" {
		f.Kind = Pass
	}
	s := string(f.Kind)
	if f.Delay != 0 {
		s += ",delay=" + f.Delay.String()
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"bytes", f.Bytes}, {"status", f.Status}, {"length", f.Length}} {
		if n.value != 0 {
			s += "," + n.name + "=" + strconv.Itoa(n.value)
		}
	}
	if f.Match != "" {
		s += ",match=" + f.Match
	}
	if f.FIN {
		s += ",fin"
	}
	if f.Last {
		s += ",last"
	}
	return s
}

// Check says what is wrong with a fault: an unknown kind, a parameter that it
// would ignore, or a value that makes no sense.
func (f Fault) Check() error {
	if f.Kind == "" {
		f.Kind = Pass
	}
	t, ok := traits[f.Kind]
	if !ok {
		return fmt.Errorf("fault %q: no such kind; have %s", f.Kind, kindList())
	}
	if name := f.ignored(t); name != "" {
		return fmt.Errorf("fault %s takes no %s; it takes: %s", f.Kind, name, takesOrNothing(t))
	}
	switch {
	case f.Delay < 0, f.Bytes < 0, f.Length < 0:
		return fmt.Errorf("fault %s: a negative number", f.Kind)
	case f.Delay == 0 && strings.Contains(t.takes, "delay"):
		return fmt.Errorf("fault %s: delay is missing, e.g. delay=100ms", f.Kind)
	case f.Status != 0 && (f.Status < 200 || f.Status > 599):
		return fmt.Errorf("fault %s: status %d is not between 200 and 599", f.Kind, f.Status)
	case strings.ContainsAny(f.Match, ",\r\n"):
		return fmt.Errorf("fault %s: match holds a comma or a line's end", f.Kind)
	}
	return nil
}

// ignored is the first parameter that is set and not taken.
func (f Fault) ignored(t trait) string {
	for _, p := range []struct {
		name string
		set  bool
	}{
		{"delay", f.Delay != 0}, {"bytes", f.Bytes != 0}, {"status", f.Status != 0}, {"length", f.Length != 0},
		{"match", f.Match != ""}, {"fin", f.FIN}, {"last", f.Last},
	} {
		if p.set && !slices.Contains(strings.Fields(t.takes), p.name) {
			return p.name
		}
	}
	return ""
}
