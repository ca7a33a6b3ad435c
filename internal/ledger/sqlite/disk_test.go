package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/ledgertest"
	"github.com/setpoint-dev/setpoint/internal/ledger/seenfile"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
)

// inMemory is a directory on which a sync costs nothing, where there is one:
// the tests below open a ledger a few hundred times.
func inMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "ledger")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	return dir
}

// image is the bytes of a ledger as a crash leaves them, with what was
// acknowledged and how long its log was each time.
type image struct {
	db, wal []byte
	entries []ledger.Entry
	// sizes of the log after the entry of the same index; 0 where that was in the
	// file by then.
	sizes []int
}

// imageOf is that of a ledger of which some entries are in its file and others
// only in its log.
func imageOf(t *testing.T, inFile, inLog int) image {
	t.Helper()
	path := filepath.Join(inMemory(t), "ledger.db")
	check(t, sqlite.Init(path, "os:test"))
	s := openLedger(t, path)
	_, err := s.Append(t.Context(), ledger.Position{}, ledgertest.Drafts(varied(inFile)...))
	check(t, err)
	check(t, s.Close())
	s = openLedger(t, path)
	im := image{}
	im.entries, err = s.Read(t.Context(), 0, 100_000)
	check(t, err)
	im.sizes = make([]int, len(im.entries))
	for _, d := range varied(inLog) {
		d.Unique += "/log"
		es, err := s.Append(t.Context(), im.entries[len(im.entries)-1].Position(), ledgertest.Drafts(d))
		check(t, err)
		info, err := os.Stat(path + "-wal")
		check(t, err)
		im.entries, im.sizes = append(im.entries, es...), append(im.sizes, int(info.Size()))
	}
	im.db, err = os.ReadFile(path)
	check(t, err)
	im.wal, err = os.ReadFile(path + "-wal")
	check(t, err)
	check(t, s.Close())
	return im
}

// varied are drafts that fill every table and index.
func varied(n int) []ledger.Draft {
	ds := make([]ledger.Draft, n)
	for i := range ds {
		ds[i] = ledgertest.Gap(fmt.Sprint("entry ", i, strings.Repeat(".", i%300)))
		ds[i].Unique = fmt.Sprint("name/", i)
		if i%5 == 0 {
			ds[i].Blobs = [][]byte{bytes.Repeat([]byte{byte(i)}, 40*i%5000)}
		}
	}
	return ds
}

// put writes an image as a ledger that a crash left.
func (im image) put(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "ledger.db")
	check(t, os.WriteFile(path, im.db, 0o600))
	check(t, os.WriteFile(path+"-wal", im.wal, 0o600))
	if err := os.Remove(path + "-shm"); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return path
}

// found opens and verifies a ledger, and gives its entries, or why it is
// refused.
func found(t *testing.T, path string) ([]ledger.Entry, error) {
	t.Helper()
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	if _, err := s.Verify(t.Context()); err != nil {
		return nil, err
	}
	es, err := s.Read(t.Context(), 0, 100_000)
	if err != nil {
		return nil, err
	}
	_, err = ledger.Fold(es)
	return es, err
}

// TestTornLog cuts the log in the frames of the last commits: what is found is
// every entry whose commit is whole, and no other.
func TestTornLog(t *testing.T) {
	im := imageOf(t, 40, 12)
	whole, dir := im.wal, inMemory(t)
	first := im.sizes[len(im.sizes)-4]
	cuts := map[int]bool{0: true, 31: true, 32: true}
	for at := first - 5; at <= len(whole); at += max(1, (len(whole)-first)/70) {
		cuts[at] = true
	}
	for _, size := range im.sizes[len(im.sizes)-4:] {
		cuts[size-1], cuts[size], cuts[min(size+1, len(whole))] = true, true, true
	}
	for at := range cuts {
		im.wal = whole[:at]
		want := 0
		for want < len(im.sizes) && im.sizes[want] <= at {
			want++
		}
		got, err := found(t, im.put(t, dir))
		if err != nil {
			t.Fatalf("cut at byte %d of %d: %v", at, len(whole), err)
		}
		if !reflect.DeepEqual(got, im.entries[:want]) {
			t.Fatalf("cut at byte %d of %d: %d entries, want the %d that are whole", at, len(whole), len(got), want)
		}
	}
}

// TestFlippedByte: one byte of the file is changed. That is found out, or
// changes nothing.
func TestFlippedByte(t *testing.T) {
	im := imageOf(t, 200, 0)
	im.wal = nil
	noticed, tried := 0, 0
	for at := range sampled(t, len(im.db), 150) {
		changed := im
		changed.db = flipped(im.db, at)
		got, err := found(t, changed.put(t, inMemory(t)))
		tried++
		if err != nil {
			noticed++
			continue
		}
		if !reflect.DeepEqual(got, im.entries) {
			t.Fatalf("byte %d of %d was changed, and %d other entries passed for the %d", at, len(im.db), len(got), len(im.entries))
		}
	}
	t.Logf("%d of %d changed bytes were noticed, the others changed nothing", noticed, tried)
	if noticed < tried/4 {
		t.Errorf("only %d of %d changed bytes were noticed", noticed, tried)
	}
}

// TestFlippedByteInLog: SQLite takes a frame that does not add up for the end of
// its log, as after a crash, so what comes after it is lost without a word. No
// other entry appears, and whoever remembers the end of the chain notices.
func TestFlippedByteInLog(t *testing.T) {
	im := imageOf(t, 40, 12)
	noticed := 0
	for at := range sampled(t, len(im.wal), 60) {
		changed := im
		changed.wal = flipped(im.wal, at)
		dir := inMemory(t)
		path := changed.put(t, dir)
		check(t, seenfile.Forget(path+".seen", im.entries[len(im.entries)-1].Position()))
		got, err := found(t, path)
		switch {
		case err != nil:
			noticed++
			continue
		case len(got) > len(im.entries) || !reflect.DeepEqual(got, im.entries[:len(got)]):
			t.Fatalf("byte %d of the log was changed, and %d other entries passed", at, len(got))
		}
		s := openLedger(t, path)
		seen, err := seenfile.Open(t.Context(), s, path+".seen")
		if cut := len(got) < len(im.entries); errors.Is(err, seenfile.ErrOlder) != cut {
			t.Errorf("byte %d of the log: %d of %d entries are left, and the seen file says %v", at, len(got), len(im.entries), err)
		}
		if err == nil {
			check(t, seen.Close())
		} else {
			noticed++
			check(t, s.Close())
		}
	}
	if noticed == 0 {
		t.Error("nothing was lost: nothing was tried")
	}
}

// sampled gives about n places, some at the head of every page.
func sampled(t *testing.T, size, n int) map[int]bool {
	t.Helper()
	if testing.Short() {
		n /= 4
	}
	const page = 4096
	at := map[int]bool{}
	pages := (size + page - 1) / page
	for i := range n {
		p := i % pages
		// The head of a page, its list of cells, its middle, its end.
		off := []int{0, 3, 8 + i%40, page/2 + 37*i%1000, page - 1 - i%200}[(i/pages)%5]
		at[min(p*page+off, size-1)] = true
	}
	return at
}

func flipped(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 0x41
	return b
}

func TestNetworkFileSystems(t *testing.T) {
	for name, tt := range map[string]struct {
		magic uint32
		want  string
	}{
		"ext4": {0xef53, ""}, "xfs": {0x58465342, ""}, "btrfs": {0x9123683e, ""}, "tmpfs": {0x01021994, ""}, "overlay": {0x794c7630, ""},
		"fuse": {0x65735546, ""}, "9p": {0x01021997, ""},
		"nfs": {0x6969, "NFS"}, "smb": {0x517b, "SMB"}, "cifs": {0xff534d42, "CIFS"}, "smb2": {0xfe534d42, "SMB2"}, "ceph": {0x00c36400, "Ceph"},
	} {
		err := sqlite.Network("x.db", tt.magic)
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), "("+tt.want+")") {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

// TestReadingKeepsTheLock: an OS lock of the kind that SQLite takes ends for the
// whole process when any descriptor of the file is closed. Without it another
// program may take the log away under the writer.
func TestReadingKeepsTheLock(t *testing.T) {
	path := newLedger(t)
	s := openLedger(t, path)
	defer func() { check(t, s.Close()) }()
	grow(t, s, 3)
	if !sharedLock(t, path) {
		t.Skip("the system does not say which locks are held")
	}
	r, err := sqlite.OpenReader(path)
	check(t, err)
	check(t, r.Close())
	if _, err := sqlite.Open(path, sqlite.Options{}); !errors.Is(err, ledger.ErrLocked) {
		t.Fatal(err)
	}
	if !sharedLock(t, path) {
		t.Error("looking into the ledger took SQLite's lock away")
	}
}

// sharedLock reports whether this process holds SQLite's lock on a file.
func sharedLock(t *testing.T, path string) bool {
	t.Helper()
	info, err := os.Stat(path)
	check(t, err)
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return false
	}
	inode := fmt.Sprintf(":%d 1073741826 ", info.Sys().(*syscall.Stat_t).Ino)
	return bytes.Contains(locks, []byte(inode))
}

// TestReadOnlyDirectory: the ledger may be written, its directory not.
func TestReadOnlyDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root writes everywhere")
	}
	path := newLedger(t)
	check(t, os.Chmod(filepath.Dir(path), 0o500))                    //nolint:gosec // a directory
	defer func() { check(t, os.Chmod(filepath.Dir(path), 0o700)) }() //nolint:gosec // a directory
	if s, err := sqlite.Open(path, sqlite.Options{}); err == nil {
		_ = s.Close()
		t.Error("a writer opened a ledger whose log it cannot create")
	} else if !strings.Contains(err.Error(), "its directory or its file system is read-only") {
		t.Errorf("got %v", err)
	}
}
