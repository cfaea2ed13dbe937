/* vec_hwy.h: what the Highway bodies share: vectors at any address, and blocks of 16 bytes.
 *
 * highway.cc includes it once for each target, hence Highway's kind of include guard. SPDX-License-Identifier: Apache-2.0 */
#if defined(KERNELS_VEC_HWY_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KERNELS_VEC_HWY_H
#undef KERNELS_VEC_HWY_H
#else
#define KERNELS_VEC_HWY_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kn_hwy {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/* 16 bytes as words T, whatever the size of the target's vectors. */
template <class T> using Block = hn::CappedTag<T, 16 / sizeof(T)>;

template <class D> HWY_INLINE hn::Vec<D> load(D d, const uint8_t *p)
{
	return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D> *>(p));
}

template <class D> HWY_INLINE void store(D d, hn::Vec<D> v, uint8_t *p)
{
	hn::StoreU(v, d, reinterpret_cast<hn::TFromD<D> *>(p));
}

template <class T> HWY_INLINE T get(const uint8_t *p)
{
	T v;
	memcpy(&v, p, sizeof(T));
	return v;
}

template <class T> HWY_INLINE void put(uint8_t *p, T v) { memcpy(p, &v, sizeof(T)); }

} // namespace HWY_NAMESPACE
} // namespace kn_hwy
HWY_AFTER_NAMESPACE();

#endif
