package incident

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Course is a value over time. The last one holds for ever.
type Course []Point

// Point is one value of a course.
type Point struct {
	Value float64
	// Gone: there is no value, as when an exporter has died.
	Gone bool
	// For is how long it lasts; zero is the SLI's Every.
	For time.Duration
}

// gone is the word for no value.
const gone = "gone"

// UnmarshalValue reads a number, gone, or either of them with a length: "0.5
// for 10m".
func (p *Point) UnmarshalValue(v spec.Value) spec.Faults {
	text, ok := v.Scalar()
	if !ok {
		return spec.Faults{v.Fault("want a number, gone, or one of them with a length, like 0.5 for 10m")}
	}
	word, length, long := strings.Cut(text, " for ")
	if long {
		d, err := spec.ParseDuration(strings.TrimSpace(length))
		if err != nil || d <= 0 {
			return spec.Faults{v.Fault("%q is no length: want one like 10m after for", length)}
		}
		p.For = d
	}
	if word = strings.TrimSpace(word); word == gone {
		p.Gone = true
		return nil
	}
	f, err := strconv.ParseFloat(word, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
		return spec.Faults{v.Fault("%q is no number from 0 on, and not gone", word)}
	}
	p.Value = f
	return nil
}

// at gives the value some time after the course began; before that, the first.
func (c Course) at(since, every time.Duration) Point {
	for i, p := range c {
		length := p.For
		if length == 0 {
			length = every
		}
		if since < length || i == len(c)-1 {
			return p
		}
		since -= length
	}
	return Point{Gone: true}
}

// share is what part of the requests fails.
func (s SLI) share(since time.Duration) Point {
	if len(s.Success) == 0 {
		return s.Errors.at(since, s.Every)
	}
	p := s.Success.at(since, s.Every)
	p.Value = 1 - p.Value
	return p
}

// services are all that the courses are of.
func (s SLI) services() []string { return append([]string{s.Service}, s.Also...) }
