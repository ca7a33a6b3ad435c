package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// answer is what the person before the terminal said.
type answer struct {
	approve bool
	reason  string
}

// errNobody says that nobody can be asked here.
var errNobody = errors.New("nobody is at the terminal")

// person is who is asked. It never answers by itself: without --yes and
// without a terminal the ticket waits for somebody else.
type person struct {
	paper *paper
	// yes answers at once, as --yes asks for.
	yes bool
	// lines are what is typed; nil without a terminal.
	lines <-chan string
}

func newPerson(p *paper, yes bool, terminal io.Reader) *person {
	out := &person{paper: p, yes: yes}
	if terminal != nil {
		out.lines = typed(terminal)
	}
	return out
}

// typed reads lines until the end; the reader cannot be interrupted, so that
// it stays behind when the demo ends first.
func typed(r io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(r)
		for scanner.Scan() {
			lines <- strings.TrimSpace(scanner.Text())
		}
	}()
	return lines
}

// reading is the time that --yes leaves to a person who watches.
const reading = 2 * time.Second

// decide asks about one ticket. It gives errNobody where nobody can answer
// here, and the context's error when the question is no longer open.
func (p *person) decide(ctx context.Context, ticket, action string) (answer, error) {
	if p.yes {
		select {
		case <-ctx.Done():
			return answer{}, ctx.Err()
		case <-time.After(reading):
		}
		return answer{approve: true, reason: "the demo was started with --yes"}, nil
	}
	if p.lines == nil {
		return answer{}, errNobody
	}
	defer p.paper.answered()
	question := fmt.Sprintf("Do you approve %s, %s? [y/n] ", ticket, action)
	for {
		line, err := p.read(ctx, question)
		if err != nil {
			return answer{}, err
		}
		var a answer
		switch strings.ToLower(line) {
		case "y", "yes":
			a.approve = true
		case "n", "no":
		default:
			question = "Please type y or n: "
			continue
		}
		a.reason, err = p.read(ctx, "Why? It goes into the ledger: ")
		if a.reason == "" {
			a.reason = "no reason was given in the demo"
		}
		return a, err
	}
}

func (p *person) read(ctx context.Context, question string) (string, error) {
	p.paper.ask(question)
	select {
	case <-ctx.Done():
		p.paper.dropped()
		return "", ctx.Err()
	case line, ok := <-p.lines:
		if !ok {
			p.paper.dropped()
			return "", errNobody
		}
		return line, nil
	}
}
