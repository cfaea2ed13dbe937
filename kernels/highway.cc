/* highway.cc: map, scan, merge of byte planes and bit unpacking in Highway, for every target that it knows; C calls them by highway.h.
 *
 * Highway includes this file again for each target (foreach_target.h) and chooses among them at run time. The last words of a stream, less
 * than a vector, are done in plain C++ by the same rules. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernels/highway.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/vec_hwy.h"

HWY_BEFORE_NAMESPACE();
namespace kn_hwy {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
/* Vectors of one word gain nothing over the scalar kernels. */
bool map(kn_hwy_op, uint8_t *, const uint8_t *, size_t, unsigned, unsigned, uint64_t) { return false; }
bool scan(kn_hwy_op, uint8_t *, const uint8_t *, size_t, unsigned, unsigned, uint64_t) { return false; }
bool merge_planes(uint8_t *, const void *const *, unsigned, size_t) { return false; }
bool unpack(uint8_t *, const uint8_t *, size_t, unsigned, unsigned, unsigned, uint64_t) { return false; }
#else

template <class T> T mask_of(unsigned width) { return static_cast<T>(~uint64_t{0} >> (64 - width)); }

template <class T, kn_hwy_op op> T map_word(T v, T imm, unsigned width)
{
	switch (op) {
	case KN_HWY_XOR: return static_cast<T>(v ^ imm);
	case KN_HWY_ADD: return static_cast<T>(v + imm);
	case KN_HWY_ZIGZAG: return static_cast<T>((v >> 1) ^ (T{0} - (v & 1)));
	case KN_HWY_GRAY:
		for (unsigned s = 1; s < 8 * sizeof(T); s *= 2)
			v = static_cast<T>(v ^ (v >> s));
		return v;
	default: return static_cast<T>(v >> imm | v << (width - imm)); /* 0 < imm < width */
	}
}

template <kn_hwy_op op, class D, class V = hn::Vec<D>> HWY_INLINE V map_vector(D d, V v, V imm, int right, int left)
{
	switch (op) {
	case KN_HWY_XOR: return hn::Xor(v, imm);
	case KN_HWY_ADD: return hn::Add(v, imm);
	case KN_HWY_ZIGZAG: return hn::Xor(hn::ShiftRight<1>(v), hn::Sub(hn::Zero(d), hn::And(v, hn::Set(d, 1))));
	case KN_HWY_GRAY:
		v = hn::Xor(v, hn::ShiftRight<1>(v));
		v = hn::Xor(v, hn::ShiftRight<2>(v));
		v = hn::Xor(v, hn::ShiftRight<4>(v));
		if (sizeof(hn::TFromD<D>) > 1)
			v = hn::Xor(v, hn::ShiftRightSame(v, 8));
		if (sizeof(hn::TFromD<D>) > 2)
			v = hn::Xor(v, hn::ShiftRightSame(v, 16));
		if (sizeof(hn::TFromD<D>) > 4)
			v = hn::Xor(v, hn::ShiftRightSame(v, 32));
		return v;
	default: return hn::Or(hn::ShiftRightSame(v, right), hn::ShiftLeftSame(v, left));
	}
}

template <class T, kn_hwy_op op> void map_words(uint8_t *dst, const uint8_t *src, size_t n, unsigned width, uint64_t imm)
{
	const hn::ScalableTag<T> d;
	const size_t lanes = hn::Lanes(d);
	const T keep = mask_of<T>(width), c = static_cast<T>(imm);
	const auto vkeep = hn::Set(d, keep), vc = hn::Set(d, c);
	size_t i = 0;

	for (; i + lanes <= n; i += lanes)
		store(d, hn::And(map_vector<op>(d, load(d, src + i * sizeof(T)), vc, static_cast<int>(imm), static_cast<int>(width - imm)), vkeep),
		      dst + i * sizeof(T));
	for (; i < n; i++)
		put<T>(dst + i * sizeof(T), map_word<T, op>(get<T>(src + i * sizeof(T)), c, width) & keep);
}

template <class T> bool map_size(kn_hwy_op op, uint8_t *dst, const uint8_t *src, size_t n, unsigned width, uint64_t imm)
{
	switch (op) {
	case KN_HWY_XOR: map_words<T, KN_HWY_XOR>(dst, src, n, width, imm); return true;
	case KN_HWY_ADD: map_words<T, KN_HWY_ADD>(dst, src, n, width, imm); return true;
	case KN_HWY_ZIGZAG: map_words<T, KN_HWY_ZIGZAG>(dst, src, n, width, imm); return true;
	case KN_HWY_GRAY: map_words<T, KN_HWY_GRAY>(dst, src, n, width, imm); return true;
	default:
		if (imm == 0)
			return false;
		map_words<T, KN_HWY_ROT>(dst, src, n, width, imm);
		return true;
	}
}

bool map(kn_hwy_op op, uint8_t *dst, const uint8_t *src, size_t n, unsigned size, unsigned width, uint64_t imm)
{
	switch (size) {
	case 1: return map_size<uint8_t>(op, dst, src, n, width, imm);
	case 2: return map_size<uint16_t>(op, dst, src, n, width, imm);
	case 4: return map_size<uint32_t>(op, dst, src, n, width, imm);
	default: return map_size<uint64_t>(op, dst, src, n, width, imm);
	}
}

template <bool add, class V> HWY_INLINE V combine(V a, V b) { return add ? hn::Add(a, b) : hn::Xor(a, b); }

/* In a block of 16 bytes each word takes the one before, then the two before, the four before, ... */
template <class T, bool add> void scan_words(uint8_t *dst, const uint8_t *src, size_t n, unsigned width, uint64_t first)
{
	const Block<T> d;
	const Block<uint8_t> bytes;
	const size_t lanes = 16 / sizeof(T);
	const T keep = mask_of<T>(width);
	const auto vkeep = hn::Set(d, keep);
	const auto last = hn::BitCast(d, hn::Add(hn::And(hn::Iota(bytes, 0), hn::Set(bytes, sizeof(T) - 1)), hn::Set(bytes, 16 - sizeof(T))));
	auto sum = hn::Set(d, static_cast<T>(first));
	T total = static_cast<T>(first);
	size_t i = 0;

	put<T>(dst, total);
	dst += sizeof(T);
	for (; i + lanes <= n; i += lanes) {
		auto v = load(d, src + i * sizeof(T));
		v = combine<add>(v, hn::ShiftLeftLanes<1>(d, v));
		if (lanes > 2)
			v = combine<add>(v, hn::BitCast(d, hn::ShiftLeftBytes<2 * sizeof(T) % 16>(bytes, hn::BitCast(bytes, v))));
		if (lanes > 4)
			v = combine<add>(v, hn::BitCast(d, hn::ShiftLeftBytes<4 * sizeof(T) % 16>(bytes, hn::BitCast(bytes, v))));
		if (lanes > 8)
			v = combine<add>(v, hn::BitCast(d, hn::ShiftLeftBytes<8 * sizeof(T) % 16>(bytes, hn::BitCast(bytes, v))));
		store(d, hn::And(combine<add>(v, sum), vkeep), dst + i * sizeof(T));
		sum = combine<add>(sum, hn::TableLookupBytes(v, last));
	}
	total = hn::GetLane(sum);
	for (; i < n; i++) {
		const T v = get<T>(src + i * sizeof(T));
		total = static_cast<T>(add ? total + v : total ^ v);
		put<T>(dst + i * sizeof(T), total & keep);
	}
}

bool scan(kn_hwy_op op, uint8_t *dst, const uint8_t *src, size_t n, unsigned size, unsigned width, uint64_t first)
{
	const bool add = op == KN_HWY_ADD;
	switch (size) {
	case 1: add ? scan_words<uint8_t, true>(dst, src, n, width, first) : scan_words<uint8_t, false>(dst, src, n, width, first); return true;
	case 2: add ? scan_words<uint16_t, true>(dst, src, n, width, first) : scan_words<uint16_t, false>(dst, src, n, width, first); return true;
	case 4: add ? scan_words<uint32_t, true>(dst, src, n, width, first) : scan_words<uint32_t, false>(dst, src, n, width, first); return true;
	default: return false; /* two words a block gain nothing */
	}
}

bool merge_planes(uint8_t *dst, const void *const *plane, unsigned nplanes, size_t n)
{
	const hn::ScalableTag<uint8_t> d;
	const size_t lanes = hn::Lanes(d);
	const uint8_t *p[4];
	size_t i = 0;

	if (nplanes < 2 || nplanes > 4)
		return false;
	for (unsigned k = 0; k < nplanes; k++)
		p[k] = static_cast<const uint8_t *>(plane[k]);
	if (nplanes == 2) {
		for (; i + lanes <= n; i += lanes)
			hn::StoreInterleaved2(load(d, p[0] + i), load(d, p[1] + i), d, dst + 2 * i);
	} else {
		for (; i + lanes <= n; i += lanes)
			hn::StoreInterleaved4(load(d, p[0] + i), load(d, p[1] + i), load(d, p[2] + i), nplanes == 4 ? load(d, p[3] + i) : hn::Zero(d), d,
					      dst + 4 * i);
	}
	for (; i < n; i++)
		for (unsigned k = 0, size = nplanes == 2 ? 2 : 4; k < size; k++)
			dst[size * i + k] = k < nplanes ? p[k][i] : 0;
	return true;
}

/* Words of b bits in lanes L that hold b + 7: byte shuffles bring the bytes of each to its lane; a multiplication brings it 7 bits up, whatever
 * bit it began at (not all targets shift by lane), and a shift down. A block has 16 / sizeof(L) words; two blocks take whole bytes, and their
 * shuffles and factors are the same everywhere. */
template <class T, class L> void unpack_words(uint8_t *dst, const uint8_t *src, size_t n, unsigned width, unsigned b, uint64_t base)
{
	constexpr size_t lanes = 16 / sizeof(L);
	const Block<L> d;
	const Block<uint8_t> bytes;
	const auto mask = hn::Set(d, mask_of<L>(b)), vbase = hn::Set(d, static_cast<L>(base)), keep = hn::Set(d, mask_of<L>(width));
	uint8_t from[2][16];
	L factor[2][lanes];
	size_t i = 0;

	for (size_t k = 0; k < 2 * lanes; k++) {
		const size_t bit = k * b - (k < lanes ? 0 : lanes * b / 8 * 8);
		factor[k / lanes][k % lanes] = static_cast<L>(1u << (7 - bit % 8));
		for (size_t byte = 0; byte < sizeof(L); byte++)
			from[k / lanes][k % lanes * sizeof(L) + byte] = static_cast<uint8_t>(bit / 8 + byte);
	}
	for (; i + 2 * lanes <= n; i += 2 * lanes, src += 2 * lanes * b / 8)
		for (unsigned half = 0; half < 2; half++) {
			const auto packed = hn::LoadU(bytes, src + half * (lanes * b / 8));
			const auto spread = hn::BitCast(d, hn::TableLookupBytes(packed, hn::LoadU(bytes, from[half])));
			const auto raw = hn::ShiftRight<7>(hn::Mul(spread, hn::LoadU(d, factor[half])));
			const auto word = hn::And(hn::Add(hn::And(raw, mask), vbase), keep);
			uint8_t *to = dst + (i + half * lanes) * sizeof(T);
			if constexpr (sizeof(T) == sizeof(L)) {
				store(d, word, to);
			} else {
				const hn::Rebind<T, Block<L>> narrow;
				hn::StoreU(hn::TruncateTo(narrow, word), narrow, reinterpret_cast<T *>(to));
			}
		}
	for (unsigned k = 0; i < n; i++, k++) {
		const uint64_t v = get<uint64_t>(src + k * b / 8) >> k * b % 8; /* b <= 25 */
		put<T>(dst + i * sizeof(T), static_cast<T>(((v & mask_of<uint64_t>(b)) + base) & mask_of<uint64_t>(width)));
	}
}

bool unpack(uint8_t *dst, const uint8_t *src, size_t n, unsigned size, unsigned width, unsigned b, uint64_t base)
{
	if (b == 0 || b > 25)
		return false;
	if (size == 1)
		unpack_words<uint8_t, uint16_t>(dst, src, n, width, b, base);
	else if (size == 2 && b <= 9)
		unpack_words<uint16_t, uint16_t>(dst, src, n, width, b, base);
	else if (size == 4)
		unpack_words<uint32_t, uint32_t>(dst, src, n, width, b, base);
	else
		return false;
	return true;
}
#endif

} // namespace HWY_NAMESPACE
} // namespace kn_hwy
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kn_hwy {
HWY_EXPORT(map);
HWY_EXPORT(scan);
HWY_EXPORT(merge_planes);
HWY_EXPORT(unpack);
} // namespace kn_hwy

bool kn_hwy_map(kn_hwy_op op, uint8_t *dst, const uint8_t *src, size_t n, unsigned size, unsigned width, uint64_t imm)
{
	using namespace kn_hwy;
	return HWY_DYNAMIC_DISPATCH(map)(op, dst, src, n, size, width, imm);
}

bool kn_hwy_scan(kn_hwy_op op, uint8_t *dst, const uint8_t *src, size_t n, unsigned size, unsigned width, uint64_t first)
{
	using namespace kn_hwy;
	return HWY_DYNAMIC_DISPATCH(scan)(op, dst, src, n, size, width, first);
}

bool kn_hwy_merge_planes(uint8_t *dst, const void *const *plane, unsigned nplanes, size_t n)
{
	using namespace kn_hwy;
	return HWY_DYNAMIC_DISPATCH(merge_planes)(dst, plane, nplanes, n);
}

bool kn_hwy_unpack(uint8_t *dst, const uint8_t *src, size_t n, unsigned size, unsigned width, unsigned b, uint64_t base)
{
	using namespace kn_hwy;
	return HWY_DYNAMIC_DISPATCH(unpack)(dst, src, n, size, width, b, base);
}

const char *kn_hwy_target(void)
{
	const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS; /* of those in this build */
	return hwy::TargetName(targets & -targets); /* better targets have lower bits */
}
#endif
