package gate

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// WindowID is "<unix start>-<length seconds>", UTC integers. Starts are
// compared, never indices, so a change of the length cannot free a key.
type WindowID struct {
	Start  int64
	Length int64
}

// WindowAt is the window of that length which holds now. A length below one
// second counts as one.
func WindowAt(now time.Time, length time.Duration) WindowID {
	n := max(1, int64(length/time.Second))
	t := now.Unix()
	past := t % n
	if past < 0 {
		past += n
	}
	return WindowID{Start: t - past, Length: n}
}

// String returns "<unix start>-<length seconds>".
func (w WindowID) String() string {
	return strconv.FormatInt(w.Start, 10) + "-" + strconv.FormatInt(w.Length, 10)
}

// ParseWindowID reads what String wrote, and nothing that String would write
// otherwise: two spellings of one window would be two keys.
func ParseWindowID(s string) (WindowID, error) {
	i := strings.LastIndexByte(s, '-')
	if i <= 0 {
		return WindowID{}, fmt.Errorf("window id %.60q: want <unix start>-<length seconds>", s)
	}
	start, err := strconv.ParseInt(s[:i], 10, 64)
	if err != nil {
		return WindowID{}, fmt.Errorf("window id %.60q: start: %w", s, err)
	}
	length, err := strconv.ParseInt(s[i+1:], 10, 64)
	if err != nil {
		return WindowID{}, fmt.Errorf("window id %.60q: length: %w", s, err)
	}
	w := WindowID{Start: start, Length: length}
	if length < 1 || start > math.MaxInt64-length {
		return WindowID{}, fmt.Errorf("window id %.60q: length must be at least 1 and the end a 64-bit time", s)
	}
	if w.String() != s {
		return WindowID{}, fmt.Errorf("window id %.60q: not in canonical form, want %q", s, w)
	}
	return w, nil
}

// End is the first second after the window.
func (w WindowID) End() time.Time { return time.Unix(w.Start+w.Length, 0).UTC() }

// Key is "service:window_id": at most one effect each, for ever.
type Key string

// KeyOf joins a service and a window.
func KeyOf(service string, w WindowID) Key { return Key(service + ":" + w.String()) }

// Window returns the key's window. The key must be of that service, otherwise
// it is an error: a foreign key would reserve or spend another's window.
func (k Key) Window(service string) (WindowID, error) {
	id, ok := strings.CutPrefix(string(k), service+":")
	if !ok || service == "" {
		return WindowID{}, fmt.Errorf("key %.100q is not of service %.60q", string(k), service)
	}
	return ParseWindowID(id)
}
