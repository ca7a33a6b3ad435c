package cassette

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Player answers from a cassette. It is safe for concurrent use.
type Player struct {
	head Head
	// tracks are in the order of the file, used those that were played.
	tracks []exchange

	mu     sync.Mutex
	used   []bool
	missed []string
}

// Play reads a whole cassette. A line that is not as it was written is an error
// with its number.
func Play(r io.Reader) (*Player, error) {
	p := &Player{}
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 4*maxBody)
	for n := 1; scan.Scan(); n++ {
		var err error
		if n == 1 {
			err = p.readHead(scan.Bytes())
		} else {
			err = p.readTrack(scan.Bytes())
		}
		if err != nil {
			return nil, fmt.Errorf("line %d of the cassette: %w", n, err)
		}
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("read the cassette: %w", err)
	}
	if p.head.Format == "" {
		return nil, errors.New("the cassette is empty: it has no head")
	}
	p.used = make([]bool, len(p.tracks))
	return p, nil
}

func (p *Player) readHead(b []byte) error {
	if err := strict(b, &p.head); err != nil {
		return err
	}
	if p.head.Format != Format {
		return fmt.Errorf("format %q, want %q: it was not written by eval run --record, or by another version", p.head.Format, Format)
	}
	return nil
}

func (p *Player) readTrack(b []byte) error {
	var x exchange
	if err := strict(b, &x); err != nil {
		return err
	}
	text, digest, err := canonical(x.Request)
	if err != nil {
		return err
	}
	if digest != x.Digest {
		return fmt.Errorf("the digest is %.12s…, and the request has %.12s…: somebody changed the line", x.Digest, digest)
	}
	x.Request = text
	p.tracks = append(p.tracks, x)
	return nil
}

func strict(b []byte, into any) error {
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something after the JSON object")
	}
	return nil
}

// Head is what the cassette says of itself.
func (p *Player) Head() Head { return p.head }

// Len is how many exchanges are on it.
func (p *Player) Len() int { return len(p.tracks) }

// RoundTrip answers with what was recorded for this request, the first time first.
// One that was not recorded is an error, which Err repeats.
func (p *Player) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	text, digest, err := canonical(cut(body, nil, req.URL.Host))
	if err != nil {
		return nil, p.miss(err.Error())
	}
	p.mu.Lock()
	played := 0
	for i, x := range p.tracks {
		if x.Digest != digest || x.Method != req.Method {
			continue // The path is that of the recorded endpoint, which is not asked.
		}
		if !p.used[i] {
			p.used[i] = true
			p.mu.Unlock()
			return x.response(req)
		}
		played++
	}
	p.mu.Unlock()
	if played > 0 {
		return nil, p.miss(fmt.Sprintf("a request is asked once more than the %d times that it was recorded (digest %.12s…)", played, digest))
	}
	return nil, p.miss(fmt.Sprintf("%s %s was not recorded (digest %.12s…): %s", req.Method, req.URL.Path, digest, p.nearest(text)))
}

func (p *Player) miss(text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missed = append(p.missed, text)
	return errors.New("cassette: " + text)
}

// Err says after a run what is not as it was recorded: requests that are not on
// the cassette, and exchanges that nobody asked for. nil: the run was the same.
func (p *Player) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	all = append(all, p.missed...)
	for i, used := range p.used {
		if !used {
			all = append(all, fmt.Sprintf("exchange %d (line %d, digest %.12s…) was recorded and not asked for", i+1, i+2, p.tracks[i].Digest))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("the run is not the recorded one:\n  %s", strings.Join(all, "\n  "))
}
