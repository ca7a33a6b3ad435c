package main

import (
	"regexp"
	"strings"
)

var (
	offsets   = regexp.MustCompile(`[+-]\d+\.\d{3}s`)
	lookAges  = regexp.MustCompile(`is (\d+m)?\d+s old`)
	durations = regexp.MustCompile(`takes \S+,`)
	costs     = regexp.MustCompile(`costs \d+ \+ \d+ tokens`)
	daily     = regexp.MustCompile(`allows \d+ a day`)
	heads     = regexp.MustCompile(`head \d+ [0-9a-f]{12}`)
	entries   = regexp.MustCompile(`\d+ entries`)
	revisions = regexp.MustCompile(`revision [0-9a-f]{12}`)
	templates = regexp.MustCompile(`(propose\.\w+)@\d+`)
	sizes     = regexp.MustCompile(`[0-9.e+]+ GiB`)
	processes = regexp.MustCompile(`process \d+`)
	psOf      = regexp.MustCompile(`ps -p \d+`)
	ports     = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	versions  = regexp.MustCompile(`version 3\.\d+\.\d+`)
)

// steady puts stable words in the place of times and ports.
func (c *clinic) steady(text string) string {
	hosts := make([]string, 0, 2*len(c.words))
	for i := 0; i < len(c.words); i += 2 {
		hosts = append(hosts, c.words[i], c.words[i+1])
		if _, addr, ok := strings.Cut(c.words[i], "://"); ok {
			hosts = append(hosts, addr, strings.TrimPrefix(c.words[i+1], "http://"))
		}
	}
	own := buildInfo()
	text = strings.NewReplacer(append(hosts, "are one: "+own.Version, "are one: VERSION",
		"this is "+own.Version+" (revision "+short(own.Revision)+")", "this is VERSION (revision REVISION)")...).Replace(text)
	for _, r := range []struct {
		re   *regexp.Regexp
		with string
	}{
		{offsets, "OFFSET"}, {lookAges, "is AGE old"}, {durations, "takes TIME,"}, {costs, "costs IN + OUT tokens"}, {daily, "allows SOME a day"},
		{heads, "head SEQ HASH"}, {entries, "N entries"}, {revisions, "revision REVISION"}, {templates, "$1@N"}, {sizes, "N GiB"},
		{processes, "process PID"}, {psOf, "ps -p PID"}, {ports, "127.0.0.1:PORT"}, {versions, "version 3.X"},
	} {
		text = r.re.ReplaceAllString(text, r.with)
	}
	return text
}
