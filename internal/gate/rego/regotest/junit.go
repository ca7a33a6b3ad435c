package regotest

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// The elements of JUnit's XML that CI systems read.
type (
	junitSuites struct {
		XMLName xml.Name `xml:"testsuites"`
		Name    string   `xml:"name,attr"`
		junitCounts
		Suites []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name string `xml:"name,attr"`
		junitCounts
		Cases []junitCase `xml:"testcase"`
	}
	junitCounts struct {
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Errors   int    `xml:"errors,attr"`
		Skipped  int    `xml:"skipped,attr"`
		Time     string `xml:"time,attr"`
		seconds  float64
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr"`
		Line    int           `xml:"line,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitProblem `xml:"failure"`
		Error   *junitProblem `xml:"error"`
		Skipped *junitProblem `xml:"skipped"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit is the report in JUnit's XML: one suite a file, one test case a test. A
// case of a table has the table's file for its class.
func (r Report) JUnit(name string) ([]byte, error) {
	doc := junitSuites{Name: name}
	for _, t := range r.Tests {
		if n := len(doc.Suites); n == 0 || doc.Suites[n-1].Name != t.File {
			doc.Suites = append(doc.Suites, junitSuite{Name: t.File})
		}
		s := &doc.Suites[len(doc.Suites)-1]
		s.Cases = append(s.Cases, junitOf(t))
		s.count(t)
		doc.count(t)
	}
	out, err := xml.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write JUnit's XML: %w", err)
	}
	return append([]byte(xml.Header), append(out, '\n')...), nil
}

func (c *junitCounts) count(t Test) {
	c.Tests++
	switch t.Result {
	case Failed:
		c.Failures++
	case Errored:
		c.Errors++
	case Skipped:
		c.Skipped++
	case Passed:
	}
	c.seconds += t.Seconds
	c.Time = junitTime(c.seconds)
}

func junitTime(seconds float64) string { return strconv.FormatFloat(seconds, 'f', 6, 64) }

func junitOf(t Test) junitCase {
	c := junitCase{Name: t.Name, Class: t.File, File: t.File, Line: t.Line, Time: junitTime(t.Seconds), Output: t.Output}
	if t.Package != "" {
		c.Name, c.Class = strings.TrimPrefix(t.Name, t.Package+"."), t.Package
	}
	text := append([]string{fmt.Sprintf("%s:%d: %s", t.File, t.Line, t.Text)}, t.Why()...)
	p := &junitProblem{Message: t.Text, Text: strings.Join(text, "\n")}
	if t.FailedAt != nil {
		p.Message = "false: " + t.FailedAt.Text
	}
	switch t.Result {
	case Failed:
		c.Failure = p
	case Errored:
		c.Error = p
	case Skipped:
		c.Skipped = &junitProblem{Message: t.Text}
	case Passed:
	}
	return c
}
