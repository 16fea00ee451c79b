// Colly on a list of URLs.
//
// Usage: peer-colly LIST CONCURRENCY DELAY_MS. Without a delay there is one rule for all hosts, with that many
// requests at once; with a delay each host has a rule of its own, with one request at a time.
// It fails unless every URL gives a page with 200.
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"
)

func main() {
	list, err := os.ReadFile(os.Args[1])
	must(err)
	concurrency, err := strconv.Atoi(os.Args[2])
	must(err)
	delayMs, err := strconv.Atoi(os.Args[3])
	must(err)
	urls := strings.Fields(string(list))

	collector := colly.NewCollector(colly.Async(true), colly.UserAgent("bench"))
	collector.IgnoreRobotsTxt = false
	if delayMs == 0 {
		must(collector.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: concurrency}))
	} else {
		must(collector.Limits(rulePerHost(urls, time.Duration(delayMs)*time.Millisecond)))
	}
	var fetched atomic.Int64
	collector.OnResponse(func(response *colly.Response) {
		if response.StatusCode == http.StatusOK && len(response.Body) > 0 {
			fetched.Add(1)
		}
	})
	collector.OnError(func(response *colly.Response, err error) {
		log.Println(response.Request.URL, err)
	})

	for _, url := range urls {
		must(collector.Visit(url))
	}
	collector.Wait()
	if fetched.Load() != int64(len(urls)) {
		log.Fatalf("%d of %d URLs were fetched", fetched.Load(), len(urls))
	}
}

// Colly counts all hosts that a rule matches as one, so each host needs its own.
func rulePerHost(urls []string, delay time.Duration) []*colly.LimitRule {
	known := map[string]bool{}
	var rules []*colly.LimitRule
	for _, text := range urls {
		parsed, err := url.Parse(text)
		must(err)
		if !known[parsed.Host] {
			known[parsed.Host] = true
			rules = append(rules, &colly.LimitRule{DomainGlob: parsed.Host, Parallelism: 1, Delay: delay})
		}
	}
	return rules
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
