package reload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// burst is how long events are gathered: saving one file gives several.
const burst = 200 * time.Millisecond

// maxFolders is how many folders are watched; more are looked at in every
// interval alone.
const maxFolders = 1000

// Notifier gives a hint soon after a folder changed. Nothing depends on it.
type Notifier struct {
	folder string
	every  time.Duration
	fault  func(err error)
	hints  chan struct{}
}

// NewNotifier makes the notifier of a folder with all below it. Every so often
// it looks whether they are still the same folders, and watches others instead.
// fault hears why they cannot be watched, once each; nil that they can again.
func NewNotifier(folder string, every time.Duration, fault func(err error)) *Notifier {
	return &Notifier{folder: folder, every: every, fault: fault, hints: make(chan struct{}, 1)}
}

// Hints has a value after a change. Changes that nobody took yet are one.
func (n *Notifier) Hints() <-chan struct{} { return n.hints }

// Run watches until ctx ends.
func (n *Notifier) Run(ctx context.Context) {
	tick := time.NewTicker(n.every)
	defer tick.Stop()
	quiet := time.NewTimer(burst)
	defer quiet.Stop()
	gathering := true // for the first look at the folders
	var s sight
	defer func() { s.close() }()
	for {
		events, lost := s.channels()
		// An event tells nothing but that there was one, and so do lost events.
		select {
		case <-ctx.Done():
			return
		case _, open := <-events:
			s.endedIf(!open)
		case _, open := <-lost:
			s.endedIf(!open)
		case <-quiet.C:
			gathering = false
			n.renew(&s)
			n.hint()
			continue
		case <-tick.C:
			if n.renew(&s) {
				n.hint() // what happened before is not known
			}
			continue
		}
		if !gathering {
			gathering = true
			quiet.Reset(burst)
		}
	}
}

func (n *Notifier) hint() {
	select {
	case n.hints <- struct{}{}:
	default:
	}
}

// renew watches the folders that there are now, and reports whether it had to
// begin anew.
func (n *Notifier) renew(s *sight) bool {
	folders, err := foldersOf(n.folder)
	if err == nil && s.sees(folders) {
		return false
	}
	s.close()
	if err == nil {
		err = s.open(folders)
	}
	if text := textOf(err); text != s.told {
		s.told = text
		n.fault(err)
	}
	return err == nil
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// sight is a set of folders that is being watched.
type sight struct {
	folders map[string]fs.FileInfo
	w       *fsnotify.Watcher
	// told is the fault that was last told of.
	told string
}

// sees reports whether just these folders are watched. A folder that was
// removed and made again is another one, even where the file system gives it the
// number of the old one: the watch ended with that.
func (s *sight) sees(folders map[string]fs.FileInfo) bool {
	return s.w != nil && len(s.w.WatchList()) == len(folders) && maps.EqualFunc(s.folders, folders, os.SameFile)
}

func (s *sight) open(folders map[string]fs.FileInfo) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch for changes: %w", err)
	}
	for path := range folders {
		if err := w.Add(path); err != nil {
			return errors.Join(fmt.Errorf("watch %s for changes: %w", path, err), w.Close())
		}
	}
	s.w, s.folders = w, folders
	return nil
}

// channels are nil, which never have a value, while nothing is watched.
func (s *sight) channels() (<-chan fsnotify.Event, <-chan error) {
	if s.w == nil {
		return nil, nil
	}
	return s.w.Events, s.w.Errors
}

// endedIf drops a watcher that ended by itself; the next look at the folders
// makes another.
func (s *sight) endedIf(ended bool) {
	if ended {
		s.close()
	}
}

func (s *sight) close() {
	if s.w != nil {
		_ = s.w.Close() // What was watched is not needed any more.
	}
	s.w, s.folders = nil, nil
}

// foldersOf are a folder and all below it from which a bundle is read.
func foldersOf(root string) (map[string]fs.FileInfo, error) {
	fsys, out := os.DirFS(root), map[string]fs.FileInfo{}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case p != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case len(out) == maxFolders:
			return fmt.Errorf("it has more than %d folders", maxFolders)
		}
		info, err := fs.Stat(fsys, p)
		if err != nil {
			return err
		}
		out[filepath.Join(root, filepath.FromSlash(p))] = info
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("watch %s for changes: %w", root, err)
	}
	return out, nil
}
