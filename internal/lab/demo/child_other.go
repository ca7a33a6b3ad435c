//go:build !linux

package demo

import "syscall"

// childAttr is empty where the kernel offers less: the children are still ended
// by their parent.
func childAttr() *syscall.SysProcAttr { return nil }
