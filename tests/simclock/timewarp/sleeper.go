// A program that waits in all the ways that Go has, says when it was woken, and does what its
// arguments say:
//   sleep SECONDS...   sleeps, one after the other; tells the time that each took
//   ways               timers, a ticker, deadlines of contexts and connections, a child
//   ticks N            a ticker of 100 ms, N times; tells the mean and the longest lateness
//   now                the wall clock and how it differs from a moment ago
//   fork               sleeps a minute and has a child program that works half a real second
//   spin               computes for a second of its own time
//   forever            waits for a signal; says "ready", and at SIGTERM how long it has waited
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

var start = time.Now()

var speaks sync.Mutex

func say(format string, values ...interface{}) {
	speaks.Lock()
	defer speaks.Unlock()
	fmt.Printf("%.3f ", time.Since(start).Seconds())
	fmt.Printf(format+"\n", values...)
}

func main() {
	switch os.Args[1] {
	case "sleep":
		for _, word := range os.Args[2:] {
			seconds, _ := strconv.ParseFloat(word, 64)
			time.Sleep(time.Duration(seconds * float64(time.Second)))
			say("slept")
		}
	case "ways":
		ways()
	case "ticks":
		count, _ := strconv.Atoi(os.Args[2])
		ticks(count)
	case "now":
		before := time.Now()
		fmt.Println(before.UnixNano(), time.Since(before) < time.Second)
	case "fork":
		out, err := exec.Command("sh", "-c", "sleep 0.5; echo done").Output()
		say("child %q %v", out, err)
		time.Sleep(time.Minute)
		say("slept")
	case "spin":
		rounds := 0
		for time.Since(start) < time.Second {
			rounds++
		}
		say("spun")
	case "forever":
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGTERM)
		say("ready")
		<-told
		say("told")
		os.Exit(7)
	}
}

func ways() {
	var group sync.WaitGroup
	run := func(f func()) {
		group.Add(1)
		go func() { defer group.Done(); f() }()
	}
	run(func() { time.Sleep(10 * time.Second); say("sleep") })
	run(func() { <-time.After(60 * time.Second); say("after") })
	fired := make(chan bool)
	time.AfterFunc(25*time.Second, func() { say("func"); close(fired) })
	run(func() { <-fired })
	run(func() {
		ticker := time.NewTicker(5 * time.Second)
		for i := 0; i < 6; i++ {
			<-ticker.C
		}
		say("ticker")
	})
	run(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 35*time.Second)
		defer cancel()
		<-ctx.Done()
		say("context")
	})
	run(func() {
		listener, _ := net.Listen("tcp", "127.0.0.1:0")
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			panic(err)
		}
		conn.SetReadDeadline(time.Now().Add(15 * time.Second))
		var buffer [1]byte
		_, err = conn.Read(buffer[:])
		say("deadline")
	})
	group.Wait()
}

func ticks(count int) {
	ticker := time.NewTicker(100 * time.Millisecond)
	var worst, sum time.Duration
	first := time.Now()
	for i := 1; i <= count; i++ {
		<-ticker.C
		late := time.Since(first) - time.Duration(i)*100*time.Millisecond
		sum += late
		if late > worst {
			worst = late
		}
	}
	fmt.Printf("%.6f %.6f\n", (sum / time.Duration(count)).Seconds(), worst.Seconds())
}
