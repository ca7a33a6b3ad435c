package pgtest

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// nobody stands in where Debian's user is missing: any unprivileged id does.
const nobody = 65534

// account is who the server runs as: ours, or another than root.
func account() (uid, gid uint32, root bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nobody, nobody, true
	}
	uid64, err := strconv.ParseUint(u.Uid, 10, 32)
	gid64, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil || gidErr != nil || uid64 == 0 {
		return nobody, nobody, true
	}
	return uint32(uid64), uint32(gid64), true
}

// own gives a new folder to that account.
func own(dir string) error {
	uid, gid, root := account()
	if !root {
		return nil
	}
	if err := os.Chown(dir, int(uid), int(gid)); err != nil {
		return fmt.Errorf("postgresql: %w", err)
	}
	return nil
}

// attributes keep a Ctrl-C in the terminal from the server, which is to end by
// its keeper, in order.
func attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if uid, gid, root := account(); root {
		attr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
	return attr
}
