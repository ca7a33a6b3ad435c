// Package changefile reads the file of a change feed: JSON lines that other
// programs append. It takes a path and gives the changes of a service. A file
// that is not there, or that holds bad lines, is said once and stops nothing:
// what is lost of a feed costs context only.
package changefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

const (
	// MaxTail is how much of the end of a file is read, in bytes.
	MaxTail = 1 << 20
	// keptChanges is how many changes of one service are kept, and how many that
	// lie ahead.
	keptChanges = 200
	// namedLines is how many bad lines are named after one look.
	namedLines = 10
)

// Options describe one file.
type Options struct {
	Path string
	// Notice is told what is wrong, each time once; Bad how many lines are bad,
	// or 1 where the file cannot be read. Both may be nil.
	Notice func(text string)
	Bad    func(n int)
	// Unknown says why nobody has a service of a name, and "" of one that there is.
	// A line about none is named like a bad one, and its change is kept, but not
	// among All: the documents may be loaded again with the service. Nil: there are
	// all.
	Unknown func(service string) string
	// Now is this host's clock.
	Now func() time.Time
}

// File is one file. It is safe for concurrent use.
type File struct {
	o Options

	mu   sync.Mutex
	info fs.FileInfo // of what was read; nil before
	// judged is up to where the lines of this file were looked at, in bytes.
	judged int64
	// fault is what was said of the file as a whole; "" while it can be read.
	fault string
	known map[string][]measure.Change
}

// New returns a File; nothing is read yet.
func New(o Options) *File {
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	if o.Bad == nil {
		o.Bad = func(int) {}
	}
	if o.Unknown == nil {
		o.Unknown = func(string) string { return "" }
	}
	return &File{o: o, known: map[string][]measure.Change{}}
}

// Changes are those of one service, newest first.
func (f *File) Changes(service string) []measure.Change {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	return slices.Clone(f.known[service])
}

// All are those of all services that there are, newest first.
func (f *File) All() []measure.Change {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	var out []measure.Change
	for service, changes := range f.known {
		if f.o.Unknown(service) == "" {
			out = append(out, changes...)
		}
	}
	slices.SortFunc(out, measure.Change.Newest)
	return out
}

// Look reads the file again where it differs from what was read; otherwise it
// costs one stat.
func (f *File) Look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
}

func (f *File) look() {
	info, err := os.Stat(f.o.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.faulty("there is no change file "+f.o.Path+" yet; it is read when somebody writes it", 0)
	case err != nil:
		f.faulty("the change file cannot be read: "+err.Error(), 1)
	case !info.Mode().IsRegular():
		// Opening a pipe would wait for whoever writes to it.
		f.faulty("the change file "+f.o.Path+" is no regular file", 1)
	case f.info != nil && os.SameFile(f.info, info) && f.info.Size() == info.Size() && f.info.ModTime().Equal(info.ModTime()):
	default:
		f.read(info)
	}
}

// faulty says what keeps the file from being read, unless it said so already.
// What was read before stays known: it has happened.
func (f *File) faulty(text string, bad int) {
	if f.fault == text {
		return
	}
	f.fault = text
	f.o.Notice(text)
	if bad > 0 {
		f.o.Bad(bad)
	}
}

func (f *File) read(info fs.FileInfo) {
	from := max(0, info.Size()-MaxTail)
	data, err := tail(f.o.Path, from, info.Size())
	if err != nil {
		f.faulty("the change file cannot be read: "+err.Error(), 1)
		return
	}
	f.fault = ""
	if from > 0 {
		// The first line was begun before.
		cut := bytes.IndexByte(data, '\n') + 1
		from, data = from+int64(cut), data[cut:]
	}
	same := f.info != nil && os.SameFile(f.info, info) && info.Size() >= f.info.Size()
	if !same {
		f.judged = 0
	}
	lines := measure.ParseChanges(data)
	f.name(slices.Concat(lines.Faults, f.strangers(lines)), from)
	f.info, f.judged = info, max(f.judged, from+int64(lines.Read))
	// What lies before the end that is read has happened all the same.
	f.keep(lines.Changes, same && from == 0)
}

// tail reads from there up to the size that is known. The file may have become a
// pipe since it was looked at: to open one without NONBLOCK would wait for a writer,
// and every pass behind it.
func tail(path string, from, size int64) ([]byte, error) {
	r, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // It was only read.
	if now, err := r.Stat(); err != nil || !now.Mode().IsRegular() {
		return nil, errors.Join(errors.New("it is no regular file any more"), err)
	}
	if _, err := r.Seek(from, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, size-from))
}

// strangers are the lines that name a service which nobody has.
func (f *File) strangers(lines measure.ChangeLines) []measure.ChangeFault {
	var out []measure.ChangeFault
	for i, c := range lines.Changes {
		if why := f.o.Unknown(c.Service); why != "" {
			out = append(out, measure.ChangeFault{ChangePlace: lines.Places[i], Text: why})
		}
	}
	return out
}

// name says once which lines are bad: by their number, or by the byte where they
// begin, where the beginning of the file was not read.
func (f *File) name(faults []measure.ChangeFault, from int64) {
	bad := 0
	slices.SortFunc(faults, func(a, b measure.ChangeFault) int { return a.Offset - b.Offset })
	for _, fault := range faults {
		at := from + int64(fault.Offset)
		if at < f.judged {
			continue
		}
		where := fmt.Sprintf("%s:%d", f.o.Path, fault.Line)
		if from > 0 {
			where = fmt.Sprintf("%s: at byte %d", f.o.Path, at)
		}
		if bad++; bad <= namedLines {
			f.o.Notice(where + ": a line of the change feed is left out: " + fault.Text)
		}
	}
	if bad > namedLines {
		f.o.Notice(fmt.Sprintf("%s: %d more lines of the change feed are left out", f.o.Path, bad-namedLines))
	}
	if bad > 0 {
		f.o.Bad(bad)
	}
}

// keep takes what the file says now: the whole of it, or what is added to what was
// known. After a rotation what the old one said has happened all the same.
func (f *File) keep(changes []measure.Change, whole bool) {
	known := map[string][]measure.Change{}
	if !whole {
		known = f.known
	}
	for _, c := range changes {
		known[c.Service] = append(known[c.Service], c)
	}
	now := f.o.Now()
	for service, all := range known {
		slices.SortFunc(all, measure.Change.Newest)
		all = slices.CompactFunc(all, func(a, b measure.Change) bool { return a.Newest(b) == 0 })
		all = slices.DeleteFunc(all, func(c measure.Change) bool { return now.Sub(c.At) > measure.ChangesKept })
		if len(all) == 0 {
			delete(known, service)
			continue
		}
		known[service] = newest(all, now)
	}
	f.known = known
}

// newest bounds the changes of one service. What lies ahead has room of its own,
// for the soonest: a reporter whose clock is ahead must not push out what has
// happened, which is what a policy asks about.
func newest(all []measure.Change, now time.Time) []measure.Change {
	ahead := slices.IndexFunc(all, func(c measure.Change) bool { return c.At.Sub(now) <= measure.ChangeAhead })
	if ahead < 0 {
		ahead = len(all)
	}
	happened := all[ahead:]
	return slices.Concat(all[max(0, ahead-keptChanges):ahead], happened[:min(len(happened), keptChanges)])
}
