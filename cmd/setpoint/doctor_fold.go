package main

import (
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

const (
	// usualWidth is that of a terminal that does not say its own, in columns.
	usualWidth = 80
	// leastWidth is what a folded text needs to be readable, in columns.
	leastWidth = 32
	// indented is how far a text is moved in where its column is narrower than
	// that, in columns.
	indented = 4
)

// widthOf is how wide a line may be: that of the terminal, and 0, which folds
// nothing, where w is none. What a pipe or a file takes is for programs.
func widthOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(f) {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return usualWidth
	}
	return int(size.Col)
}

// fold breaks a text into lines of at most width columns, between words: one that
// is longer is kept whole, because it is most often a path or a URL.
func fold(text string, width int) []string {
	var out []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			out, line = append(out, line), word
		default:
			line += " " + word
		}
	}
	return append(out, line)
}

// foldBehind folds what stands behind the first columns of a line, under itself.
func foldBehind(line string, columns, width int) string {
	at := byteAt(line, columns)
	head, text := line[:at], line[at:]
	if strings.TrimSpace(text) == "" {
		return strings.TrimRight(line, " ")
	}
	begin := ""
	if width-columns < leastWidth {
		// A long name leaves no room beside it.
		head, begin, columns = strings.TrimRight(head, " "), "\n"+strings.Repeat(" ", indented), indented
	}
	lines := fold(text, max(width-columns, leastWidth))
	return head + begin + strings.Join(lines, "\n"+strings.Repeat(" ", columns))
}

var colourCode = regexp.MustCompile("^\x1b\\[[0-9;]*m")

// byteAt is where a column begins, in bytes. Colours take no column.
func byteAt(line string, column int) int {
	at := 0
	for at < len(line) {
		if code := colourCode.FindString(line[at:]); code != "" {
			at += len(code)
			continue
		}
		if column == 0 {
			break
		}
		_, size := utf8.DecodeRuneInString(line[at:])
		at += size
		column--
	}
	return at
}
