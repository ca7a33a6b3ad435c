package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/changefile"
)

// changesItems look at the file of changes, where one is configured.
func (e *examination) changesItems() []checkItem {
	file := e.site.cfg.Changes.File
	if file == "" {
		return nil
	}
	seen := feedSeen{now: e.now}
	_, seen.err = os.Stat(file)
	feed := e.app.changeFeed(e.site, changefile.Options{Notice: func(text string) { seen.said = append(seen.said, text) }, Bad: func(n int) { seen.bad += n }})
	seen.changes = feed.All()
	if e.setErr == nil {
		for _, c := range seen.changes {
			if _, known := e.set.Service(c.Service); !known && !slices.Contains(seen.strangers, c.Service) {
				seen.strangers = append(seen.strangers, c.Service)
			}
		}
		slices.Sort(seen.strangers)
	}
	return []checkItem{feedVerdict(subject{"config/changes", file}, seen)}
}

// feedSeen is what a change feed showed.
type feedSeen struct {
	// err says why there is no file; said is what is wrong with one, and bad how
	// many of its lines are left out, or 1 where it cannot be read.
	err  error
	said []string
	bad  int
	// changes are the newest first; strangers the services in them that no
	// document names, sorted.
	changes   []measure.Change
	strangers []string
	now       time.Time
}

// feedVerdict judges a change feed. What is lost of one costs context only.
func feedVerdict(s subject, f feedSeen) checkItem {
	const form = `one JSON object a line, {"time", "service", "what", "version"}; ` + "`setpoint change record` writes such lines through the agent"
	switch {
	case errors.Is(f.err, fs.ErrNotExist):
		return s.warned("there is no such file yet: nobody is told what changed", "let what deploys append to "+s.name+": "+form)
	case f.bad > 0 && !strings.HasPrefix(f.said[0], s.name+":"):
		return s.failed(f.said[0], "let "+s.name+" be a regular file that the agent's user can read, or change changes.file in setpoint.yaml")
	case f.bad > 0:
		return s.warned(fmt.Sprintf("%s; %s left out, the first: %s", f.newest(), are(f.bad, "line"), f.said[0]), "let what writes it write "+form)
	case len(f.strangers) > 0:
		return s.warned(fmt.Sprintf("%s; no document names the service %s", f.newest(), and(f.strangers)),
			"let what writes it name services as the documents do: others are shown to nobody")
	}
	return s.fine("%s", f.newest())
}

func are(n int, what string) string {
	if n == 1 {
		return count(n, what) + " is"
	}
	return count(n, what) + " are"
}

// newest tells of the newest change that is kept.
func (f feedSeen) newest() string {
	if len(f.changes) == 0 {
		return fmt.Sprintf("no change of the last %s is in it", age(measure.ChangesKept))
	}
	c := f.changes[0]
	when := age(f.now.Sub(c.At)) + " ago"
	if c.At.After(f.now) {
		when = age(c.At.Sub(f.now)) + " ahead of this host's clock"
	}
	return strings.TrimSpace(fmt.Sprintf("the newest change, %s: %s %s %s", when, c.Service, c.What, c.Version))
}
