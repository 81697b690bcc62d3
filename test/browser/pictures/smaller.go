package main

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
)

// most is how many bytes a picture of the docs may have.
const most = 150_000

// smaller is the top of a PNG with at most 256 colors. A page has few but for the edges of its letters: of those that differ little
// the most frequent one is taken.
func smaller(from []byte, height int) ([]byte, error) {
	picture, err := png.Decode(bytes.NewReader(from))
	if err != nil {
		return nil, err
	}
	bounds := picture.Bounds()
	bounds.Max.Y = min(bounds.Max.Y, bounds.Min.Y+height)
	counts := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	palette, index := fewer(counts)
	out := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			out.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&b, out)
	return b.Bytes(), err
}

// fewer returns at most 256 of the colors, and for each of them which one stands for it.
func fewer(counts map[color.RGBA]int) (palette color.Palette, index map[color.RGBA]uint8) {
	for bits := 8; ; bits-- {
		low := uint8(0xff >> bits)
		chosen := map[color.RGBA]color.RGBA{} // by what they have in common
		for c, n := range counts {
			common := color.RGBA{c.R &^ low, c.G &^ low, c.B &^ low, c.A}
			best, some := chosen[common]
			if !some || n > counts[best] || n == counts[best] && less(c, best) {
				chosen[common] = c
			}
		}
		if len(chosen) > 256 {
			continue
		}
		position := map[color.RGBA]uint8{}
		for common, c := range chosen {
			position[common] = uint8(len(palette))
			palette = append(palette, c)
		}
		index = map[color.RGBA]uint8{}
		for c := range counts {
			index[c] = position[color.RGBA{c.R &^ low, c.G &^ low, c.B &^ low, c.A}]
		}
		return palette, index
	}
}

func less(a, b color.RGBA) bool {
	return a.R < b.R || a.R == b.R && (a.G < b.G || a.G == b.G && a.B < b.B)
}
