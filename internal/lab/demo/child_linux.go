package demo

import "syscall"

// childAttr keeps a Ctrl-C in the terminal from the children, which are ended
// gently by their parent, and ends them with a parent that was killed.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
