package checker

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// inPool has all events of a story that name nothing be about the pool p.
func inPool(text string) string {
	event := regexp.MustCompile(`^\s*[\d.-]+ w`)
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if event.MatchString(line) && !strings.Contains(line, "name=") {
			line += " name=pool/p"
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

// Claims that wait for one resource: each pair of stories differs in what decides.
func TestRulesOfLanes(t *testing.T) {
	given, other := giveStory("named=a", "a", 20), boundStory("bindwait=-1", "b", 40)
	idle := idleStory("named=a", "a")
	tales := []tale{
		{"who comes later gets what somebody waits for by name", passStory("named=a", "a", "", "a"), []string{Order}},
		{"who comes later gets something else", passStory("named=a", "a", "", "b"), nil},
		{"who comes later gets by name what somebody would take who takes any", passStory("", "a", "named=b", "b"), []string{Order}},
		{"both wait by name, for the same", passStory("named=a", "a", "named=a", "a"), []string{Order}},
		{"both wait by name, for two", passStory("named=a", "a", "named=b", "b"), nil},
		{"the higher priority gets by name what somebody waits for", passStory("named=a", "a", "named=a priority=1", "a"), nil},
		{"the lower priority gets what somebody waits for by name", passStory("named=a priority=1", "a", "", "a"), []string{Order}},
		{"who comes later gets what somebody waits for who is bound", passStory("bind=x bindwait=-1", "a", "", "a"), []string{Order}},
		{"who comes later gets something else than somebody is bound to", passStory("bind=x bindwait=-1", "a", "", "b"), nil},
		{"a binding that waits for nothing takes any", passStory("bind=x", "a", "", "b"), []string{Order}},
		{"a binding that waits for nothing takes any, from the beginning", `
			0..20 w1 ok acquire#1 bind=x queued=2 fence=19 resource=a
			3..6 w2 ok acquire#1 fence=5 resource=b`, []string{Order}},
		{"who is bound may have waited for what was taken out", passStory("bind=x bindwait=-1", "a", "", "a") + `
			4..5 w3 ok remove#1 resource=b`, nil},
		{"what was taken out was taken out before", passStory("bind=x bindwait=-1", "a", "", "a") + `
			-4..-3 w3 ok remove#1 resource=b`, []string{Order}},
		{"who is bound takes any after its BindWait", passStory("bind=x bindwait=2", "a", "", "b"), nil},
		{"and then is not passed any more", `
			0..20 w1 ok acquire#1 bind=x bindwait=2 queued=2 fence=19 resource=a
			10..13 w2 ok acquire#1 fence=12 resource=b`, []string{Order}},
		{"nor by who asked before its BindWait was over", passStory("bind=x bindwait=1", "a", "", "b"), []string{Order}},
		{"the clock was ahead", passStory("bind=x bindwait=1", "a", "", "b") + `
			500..501 w3 ok acquire#9 name=lock/z fence=900`, nil},

		{"given back while somebody waits for it by name, and nobody is granted", given, []string{HandOff}},
		{"given back, and granted by the release to who waits for it", giveStory("named=a", "a", 11), nil},
		{"given back while somebody waits for something else", giveStory("named=b", "b", 20), nil},
		{"given back while somebody waits who takes any", giveStory("", "b", 20), []string{HandOff}},
		{"given back while somebody takes another one who takes any", giveStory("", "b", 11), nil},
		{"given back while somebody waits for it who is bound", giveStory("bind=x bindwait=-1", "a", 20), []string{HandOff}},
		{"given back when a BindWait was over for long", endedStory(-300), []string{HandOff}},
		{"given back when a BindWait was just over", endedStory(-100), nil},
		{"given back, and who has taken it out was killed long before", killedStory(1000), []string{HandOff}},
		{"given back, and who has taken it out was killed shortly before", killedStory(5000), nil},
		{"given back, and it rests", strings.ReplaceAll(given, "acquire#1", "acquire#1 cooldown=5"), nil},
		{"given back, and it has left the pool", given + `
			4..5 w3 ok remove#1 resource=a
			14..19 w3 ok add#2 resource=a`, nil},
		{"given back, and it has left the pool and was put back", given + `
			4..5 w3 ok remove#1 resource=a
			6..7 w3 ok add#2 resource=a`, []string{HandOff}},
		{"given back, and whether it has left the pool is not known", given + `
			4..5 w3 unknown remove#1 resource=a is=closed
			6..7 w3 ok add#2 resource=a`, nil},
		{"one who waited for something else by name was cancelled", given + `
			3..9 w3 fail acquire#1 named=b`, []string{HandOff}},
		{"one who waited for it by name was cancelled", given + "\n3..9 w3 fail acquire#1 named=a", nil},
		{"one who waited for it by name was refused when that was taken out, long before", given + `
			-30..-20 w3 fail acquire#1 named=a reason=absent
			-29..-28 w3 ok remove#2 resource=a
			-18..-17 w3 ok add#3 resource=a`, []string{HandOff}},

		{"a name gets what it asked for", "0..2 w1 ok acquire#1 named=a fence=1 resource=a", nil},
		{"a name gets something else", `
			0..2 w1 ok acquire#1 named=a fence=1 resource=b
			fault flush 1 2 amnesia`, []string{Asked}},
		{"who is bound gets what it is bound to", boundStory("bindwait=-1", "a", 40), nil},
		{"who is bound gets something else", other, []string{Asked}},
		{"who is bound gets something else after its BindWait", boundStory("bindwait=20", "b", 60), nil},
		{"who is bound gets something else before its BindWait is over", boundStory("bindwait=20", "b", 46), []string{Asked}},
		{"who is bound gets something else when its BindWait is over in whole milliseconds", boundStory("bindwait=20", "b", 47), nil},
		{"who is bound and waits for nothing gets something else", boundStory("", "b", 40), nil},
		{"another grant may have bound it in between", other + `
			20..23 w3 ok acquire#1 bind=x fence=22 resource=b
			24..25 w3 ok release#2 of#1`, nil},
		{"another grant has bound it in between, to the same", other + `
			20..23 w3 ok acquire#1 bind=x fence=22 resource=a`, []string{Asked}},
		{"another grant may have bound it when it came, to the same", other + `
			20..33 w3 ok acquire#1 bind=x fence=31 resource=a`, []string{Asked}},
		{"another grant may have bound it when it came", other + `
			20..33 w3 ok acquire#1 bind=x fence=31 resource=c`, nil},
		{"another grant may have bound it unseen", other + `
			20..60 w3 ok acquire#1 bind=x queued=21 fence=59 resource=c
			38 w3 restored of#1 detail=other`, nil},
		{"another grant has bound it since", other + `
			20..36 w3 ok acquire#1 bind=x fence=35 resource=c
			50..51 w3 ok release#2 of#1`, []string{Asked}},
		{"one that was cancelled may have bound it", other + "\n20..23 w3 fail acquire#1 bind=x", nil},
		{"one that was cancelled is of another binding", other + `
			20..23 w3 fail acquire#1 bind=y`, []string{Asked}},
		{"what it is bound to was taken out", other + "\n33..34 w3 ok remove#1 resource=a", nil},
		{"the binding may be lost", other + "\nfault flush 20 22 amnesia", nil},

		{"free for a second while somebody waits for it by name", idle, []string{Idle}},
		{"free for a second while somebody waits for something else", idleStory("named=b", "b") + `
			57..59 w3 ok acquire#1 named=b fence=58 resource=b
			1298..1300 w3 ok release#2 of#1`, nil},
		{"free for a second while somebody waits who takes any", idleStory("", "b"), []string{Idle}},
		{"free for a second while somebody waits who has been bound for long enough", idleStory("bind=x bindwait=1", "b"), []string{Idle}},
		{"free for a second while somebody is bound", idleStory("bind=x bindwait=1000", "b"), nil},
		{"it was held", strings.NewReplacer("50..55 w2 ok", "700..705 w2 ok").Replace(idle), []string{HandOff}},
		{"two hold it, and there is room for a third", shared(idle, 3, "a"), []string{Idle}},
		{"two hold it, and there is no room for a third", shared(idle, 2, "a"), nil},
		{"two hold another one", shared(idle, 2, "c"), []string{Idle}},
		{"it rests", strings.ReplaceAll(idle, "acquire#1", "acquire#1 cooldown=1000"), nil},
		{"it has rested", strings.ReplaceAll(idle, "acquire#1", "acquire#1 cooldown=50"), []string{Idle}},
		{"nobody has given it back", strings.Replace(idle, "ok release#2", "fail release#2", 1), nil},
		{"it was held by who is gone for long", idle + `
			-9000..-8999 w3 ok acquire#31 fence=-8999 resource=a
			-8500 w3 ended of#31 is=expired`, []string{Idle}},
		{"it was held by who is gone", idle + `
			-5000..-4999 w3 ok acquire#31 fence=-4999 resource=a
			-4500 w3 ended of#31 is=expired`, nil},
		{"somebody who was restored may have held it", idle + `
			3..1290 w3 ok acquire#1 queued=5 fence=1289 resource=c
			500 w3 restored of#1 detail=other`, nil},
		{"data was lost shortly before", idle + "\nfault flush -3000 -2900 amnesia", nil},
		{"data was lost long before", idle + "\nfault flush -6000 -5900 amnesia", []string{Idle}},
		{"the clock is ahead of the fences", idle + "\n500..501 w3 ok acquire#9 name=lock/z fence=9000", nil},
		{"it was not in the pool", idle + `
			40..45 w3 ok remove#1 resource=a
			600..605 w3 ok add#2 resource=a`, []string{}},
		{"one that was cancelled may have got it", idle + "\n3..400 w3 fail acquire#1", nil},
		{"one that was cancelled may not have got it", idle + "\n3..400 w3 fail acquire#1 named=c", []string{Idle}},
		{"one that was killed may have got it", idle + `
			3 w3 invoke acquire#1
			fault kill -2000 -1500 w3 kills`, nil},
		{"somebody was stopped shortly before", idle + "\nfault stop -300 -200 w3", nil},
		{"somebody was stopped long before", idle + "\nfault stop -1300 -1200 w3", []string{Idle}},
		{"a server was overwritten, which nobody may notice", idle + "\nfault overwritten 0 100 unseen", nil},
		{"some process wrote nothing for a while", strings.ReplaceAll(idle, "w3 alive", "w4 alive") + `
			0 w3 alive of#77 claim=y
			700 w3 alive of#77 claim=y`, nil},
		{"it may have been restored", idle + "\n800 w1 restored of#1 detail=other", nil},

		{"refused as absent, and it is there", "0..2 w1 fail acquire#1 named=a reason=absent", []string{Absent}},
		{"refused for something else", "0..2 w1 fail try#1 named=a reason=held", nil},
		{"refused as absent, and it was taken out before", outStory(-20, -10, 100) + `
			0..2 w1 fail acquire#1 named=a reason=absent`, nil},
		{"refused as absent, and it was taken out before and put back", outStory(-20, -10, -8) + `
			0..2 w1 fail acquire#1 named=a reason=absent`, []string{Absent}},
		{"refused as absent, and it was taken out meanwhile", outStory(1, 3, 4) + `
			0..9 w1 fail acquire#1 named=a queued=1 reason=absent`, nil},
		{"refused as absent, and it was taken out afterwards", outStory(3, 4, 5) + `
			0..2 w1 fail acquire#1 named=a reason=absent`, []string{Absent}},
		{"refused as absent, and something else was taken out", strings.ReplaceAll(outStory(-20, -10, 100), "resource=a", "resource=b") + `
			0..2 w1 fail acquire#1 named=a reason=absent`, []string{Absent}},
		{"refused as absent, and it was put back by the driver", outStory(-20, -10, 100) + `
			fill -9 -8
			0..2 w1 fail acquire#1 named=a reason=absent`, []string{Absent}},
		{"refused as absent, and all data was lost", `
			0..2 w1 fail acquire#1 named=a reason=absent
			fault flush -5 1 amnesia`, nil},

		{"forgotten, and nothing was taken out", `
			0..20 w1 ok acquire#1 named=a queued=2 fence=19 resource=a
			9 w1 restored of#1 detail=restored`, []string{Unharmed}},
		{"forgotten when its resource was taken out", outStory(3, 5, 6) + `
			0..20 w1 ok acquire#1 named=a queued=2 fence=19 resource=a
			9 w1 restored of#1 detail=restored`, nil},
		{"forgotten when another one was taken out", outStory(3, 5, 6) + `
			0..20 w1 ok acquire#1 named=b queued=2 fence=19 resource=b
			9 w1 restored of#1 detail=restored`, []string{Unharmed}},

		{"waits for what was taken out", awake(1300) + outStory(10, 12, 1300) + waitStory, []string{Absent}},
		{"waits for what was taken out, and is granted that when it is there again", awake(1300) + outStory(10, 12, 1300) + `
			0..1310 w1 ok acquire#1 named=a queued=2 fence=1308 resource=a`, []string{Absent}},
		{"it was put back", awake(1300) + outStory(10, 12, 900) + waitStory, nil},
		{"it was put back by the driver", awake(1300) + outStory(10, 12, 1300) + waitStory + "\nfill 600 602", nil},
		{"it may have been put back before", awake(1300) + outStory(10, 12, 1300) + waitStory + `
			9..11 w2 ok add#5 resource=a`, nil},
		{"something else was taken out", awake(1300) + strings.ReplaceAll(outStory(10, 12, 1300), "resource=a", "resource=b") + waitStory, nil},
		{"whether it was taken out is not known", awake(1300) + strings.Replace(outStory(10, 12, 1300), "ok remove#901", "unknown remove#901 is=closed", 1) + waitStory, nil},
		{"it may have been put back by what undoes a loss of data", awake(1300) + outStory(-9000, -8999, 1300) + waitStory + `
			fault restore -8000 -7900 amnesia`, nil},
		{"it was taken out for long", awake(1300) + outStory(-9000, -8999, 1300) + waitStory, []string{Absent}},
		{"there was a fault", awake(1300) + outStory(10, 12, 1300) + waitStory + "\nfault cut 100 200 w2", nil},
	}
	for i := range tales {
		tales[i].text = inPool(tales[i].text)
	}
	tell(t, tales)
}

// passStory has w2, who comes later than w1, granted first.
func passStory(first, got, second, gets string) string {
	return fmt.Sprintf(`
			0..20 w1 ok acquire#1 %[1]s queued=2 fence=19 resource=%[2]s
			3..11 w2 ok acquire#1 %[3]s fence=10 resource=%[4]s`, first, got, second, gets)
}

// giveStory has w1 give a back from 10 to 13 while w2 waits, who is granted at that time.
func giveStory(wish, gets string, fence int) string {
	return fmt.Sprintf(`
			0..2 w1 ok acquire#1 fence=1 resource=a alive=8
			10..13 w1 ok release#2 of#1
			3..%[3]d w2 ok acquire#1 %[1]s queued=5 fence=%[4]d resource=%[2]s`, wish, gets, fence+2, fence)
}

// endedStory has w1 give a back from 10 to 13 while w2 waits for any, whose BindWait was over
// soon after it stood in line.
func endedStory(since int) string {
	return fmt.Sprintf(`
			-400..-398 w1 ok acquire#1 fence=-399 resource=a alive=8
			10..13 w1 ok release#2 of#1
			%[1]d..22 w2 ok acquire#1 bind=x bindwait=1 queued=%[1]d.5 fence=20 resource=b`, since)
}

// killedStory has w1 give a back while w2 waits for it, and nobody is granted. w3 was killed when it
// took that out, and w4 has put it back.
func killedStory(at int) string {
	return fmt.Sprintf(`
			10000..10002 w1 ok acquire#1 fence=10001 resource=a alive=10008
			10010..10013 w1 ok release#2 of#1
			10003..10022 w2 ok acquire#1 named=a queued=10005 fence=10020 resource=a
			%[1]d w3 invoke remove#1 resource=a
			9900..9901 w4 ok add#2 resource=a
			fault kill %[1]d %[2]d w3 kills`, at, at+1)
}

// boundStory has w1 granted a, which binds x, and w2 wait for x from 30 on.
func boundStory(wish, gets string, fence int) string {
	return fmt.Sprintf(`
			0..2 w1 ok acquire#1 bind=x fence=1 resource=a
			30..%[3]d w2 ok acquire#1 bind=x %[1]s queued=32 fence=%[4]d resource=%[2]s`, wish, gets, fence+2, fence)
}

// idleStory has w2 hold a until 55, and w1 wait until 1300.
func idleStory(wish, gets string) string {
	return awake(1300) + fmt.Sprintf(`
			0..2 w2 ok acquire#1 named=a fence=1 resource=a
			50..55 w2 ok release#2 of#1
			60..1300 w1 ok acquire#1 %[1]s queued=62 fence=1299 resource=%[2]s`, wish, gets)
}

// shared has room for so many in each resource of an idleStory, and two that hold one of
// them since the first was given back.
func shared(text string, room int, resource string) string {
	text = strings.ReplaceAll(text, "acquire#1", fmt.Sprintf("acquire#1 capacity=%d", room))
	for n := range 2 {
		text += fmt.Sprintf(`
			56..59 w3 ok acquire#%[1]d named=%[2]s fence=%[3]d resource=%[2]s
			1400..1405 w3 ok release#%[4]d of#%[1]d`, 21+n, resource, 57+n, 31+n)
	}
	return text
}

// outStory has w2 take a out of the pool between the first two, and put it back from the
// third on.
func outStory(from, to, back int) string {
	return fmt.Sprintf(`
			%d..%d w2 ok remove#901 resource=a
			%d..%d w2 ok add#902 resource=a`, from, to, back, back+1)
}

// waitStory has w1 wait for a until 1200.
const waitStory = `
			0..1200 w1 fail acquire#1 named=a queued=2 reason=cancelled`

// awake has three processes write all the time.
func awake(until int) string {
	var text strings.Builder
	for at := 0; at <= until; at += 40 {
		for n := range 3 {
			fmt.Fprintf(&text, "\n%d w%d alive of#77 claim=y name=lock/y", at, n+1)
		}
	}
	return text.String()
}
