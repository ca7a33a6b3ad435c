package cassette

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// nearest names the recorded request that is most like this one, and the first
// place where they differ.
func (p *Player) nearest(text []byte) string {
	best, most := -1, -1
	for i, x := range p.tracks {
		if n := alike(x.Request, text); n > most {
			best, most = i, n
		}
	}
	if best < 0 {
		return "the cassette has no exchange at all"
	}
	return fmt.Sprintf("the nearest is exchange %d (line %d), which differs first at %s", best+1, best+2, firstDifference(p.tracks[best].Request, text))
}

// alike counts the bytes that two texts share at their beginnings and their ends.
func alike(a, b []byte) int {
	n := min(len(a), len(b))
	front := 0
	for front < n && a[front] == b[front] {
		front++
	}
	back := 0
	for back < n-front && a[len(a)-1-back] == b[len(b)-1-back] {
		back++
	}
	return front + back
}

// firstDifference says where two JSON documents differ first, in the order of
// their keys, and what stands there in either.
func firstDifference(recorded, asked []byte) string {
	var a, b any
	if json.Unmarshal(recorded, &a) != nil || json.Unmarshal(asked, &b) != nil {
		return "a place that cannot be read"
	}
	path, was, is, ok := differ("", a, b)
	if !ok {
		return "no place"
	}
	return fmt.Sprintf("%s: recorded %s, asked %s", path, was, is)
}

func differ(path string, a, b any) (at, was, is string, ok bool) {
	switch x := a.(type) {
	case map[string]any:
		if y, same := b.(map[string]any); same {
			return differMaps(path, x, y)
		}
	case []any:
		if y, same := b.([]any); same {
			return differLists(path, x, y)
		}
	case string:
		if y, same := b.(string); same {
			was, is, ok = differTexts(x, y)
			return path, was, is, ok
		}
	}
	was, is = short(a), short(b)
	return path, was, is, was != is
}

func differMaps(path string, a, b map[string]any) (at, was, is string, ok bool) {
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		x, before := a[k]
		y, now := b[k]
		switch {
		case !before:
			return path + "/" + k, "nothing", short(y), true
		case !now:
			return path + "/" + k, short(x), "nothing", true
		}
		if at, was, is, ok = differ(path+"/"+k, x, y); ok {
			return at, was, is, ok
		}
	}
	return "", "", "", false
}

func differLists(path string, a, b []any) (at, was, is string, ok bool) {
	for i := range min(len(a), len(b)) {
		if at, was, is, ok = differ(path+"/"+strconv.Itoa(i), a[i], b[i]); ok {
			return at, was, is, ok
		}
	}
	return path, fmt.Sprintf("%d entries", len(a)), fmt.Sprintf("%d", len(b)), len(a) != len(b)
}

// around is how much of a text is shown before and after a difference, in bytes.
const around = 40

func differTexts(a, b string) (was, is string, ok bool) {
	if a == b {
		return "", "", false
	}
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	return excerpt(a, at), excerpt(b, at), true
}

func excerpt(s string, at int) string {
	from, to := max(0, at-around), min(len(s), at+around)
	for from > 0 && !utf8.RuneStart(s[from]) {
		from--
	}
	for to < len(s) && !utf8.RuneStart(s[to]) {
		to++
	}
	return strconv.Quote(s[from:to])
}

// short shows a value on one line.
func short(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	if b = bytes.TrimSpace(b); len(b) <= 2*around {
		return string(b)
	}
	return excerpt(string(b), 0) + "…"
}
