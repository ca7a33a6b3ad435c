package spec

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// cron is a parsed schedule: one bit set per field.
type cron struct {
	minute, hour, dom, month, dow uint64
	// anyDom and anyDow: the field was *, so the other one alone decides. anyHour:
	// it is of no hour in particular.
	anyDom, anyDow, anyHour bool
}

type cronField struct {
	name        string
	least, most int
	words       []string
}

var cronFields = [5]cronField{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of month", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day of week", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// parseCron reads the five fields of crontab(5): *, lists, ranges, steps, and
// the English names of months and days.
func parseCron(s string) (cron, error) {
	if strings.HasPrefix(s, "@") {
		return cron{}, fmt.Errorf("%q is not supported: write the five fields out", shorten(s))
	}
	words := strings.Fields(s)
	if len(words) != len(cronFields) {
		return cron{}, fmt.Errorf("%q has %d fields, want 5: minute, hour, day of month, month, day of week",
			shorten(s), len(words))
	}
	var bits [5]uint64
	for i, w := range words {
		b, err := cronFields[i].parse(w)
		if err != nil {
			return cron{}, err
		}
		bits[i] = b
	}
	if bits[4]&(1<<7) != 0 { // 7 is Sunday too.
		bits[4] |= 1
	}
	c := cron{
		minute: bits[0], hour: bits[1], dom: bits[2], month: bits[3], dow: bits[4],
		anyDom: strings.HasPrefix(words[2], "*"), anyDow: strings.HasPrefix(words[4], "*"),
		anyHour: strings.HasPrefix(words[1], "*"),
	}
	if !c.everStarts() {
		return cron{}, fmt.Errorf("%q never starts: no such day exists", shorten(s))
	}
	return c, nil
}

func (f cronField) parse(s string) (uint64, error) {
	var bits uint64
	for part := range strings.SplitSeq(s, ",") {
		span, step, stepped := strings.Cut(part, "/")
		every := 1
		if stepped {
			n, err := strconv.Atoi(step)
			if err != nil || n < 1 || n > f.most {
				return 0, fmt.Errorf("%s %q has no step of 1 to %d", f.name, shorten(part), f.most)
			}
			every = n
		}
		low, high, err := f.span(span, stepped)
		if err != nil {
			return 0, err
		}
		for v := low; v <= high; v += every {
			bits |= 1 << v
		}
	}
	return bits, nil
}

func (f cronField) span(s string, stepped bool) (low, high int, err error) {
	if s == "*" {
		return f.least, f.most, nil
	}
	from, to, ranged := strings.Cut(s, "-")
	if low, err = f.number(from); err != nil {
		return 0, 0, err
	}
	switch {
	case ranged:
		if high, err = f.number(to); err != nil {
			return 0, 0, err
		}
	case stepped:
		high = f.most
	default:
		high = low
	}
	if low > high {
		return 0, 0, fmt.Errorf("%s %q runs backwards", f.name, shorten(s))
	}
	return low, high, nil
}

func (f cronField) number(s string) (int, error) {
	for i, w := range f.words {
		if strings.EqualFold(w, s) {
			return f.least + i, nil
		}
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < f.least || n > f.most || strings.HasPrefix(s, "+") {
		return 0, fmt.Errorf("%s %q is not %d to %d", f.name, shorten(s), f.least, f.most)
	}
	return n, nil
}

// everStarts refuses the 31st of February: such a maintenance would look
// reviewed and do nothing.
func (c cron) everStarts() bool {
	if !c.anyDow {
		return true
	}
	days := [13]int{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	for m := 1; m <= 12; m++ {
		if c.month&(1<<m) != 0 && c.dom&(1<<(days[m]+1)-1) != 0 {
			return true
		}
	}
	return false
}

func (c cron) matches(t time.Time) bool {
	if c.minute&(1<<t.Minute()) == 0 || c.hour&(1<<t.Hour()) == 0 || c.month&(1<<int(t.Month())) == 0 {
		return false
	}
	dom, dow := c.dom&(1<<t.Day()) != 0, c.dow&(1<<int(t.Weekday())) != 0
	switch { // As crontab(5): two restricted day fields are either-or.
	case c.anyDom || c.anyDow:
		return dom && dow
	default:
		return dom || dow
	}
}
